"""The ranking of tools by the words of a query: BM25 over ids, descriptions and argument names."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pegboard.providers import ToolDefinition

K1 = 1.2
B = 0.75
"""The usual constants: how soon a repeated word adds nothing, and how much length counts."""
SELECT = "select:"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")


def ranked(query: str, tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """Return the tools that match the query, the best match first.

    Tools that the query names by id come before all others. `select:ID,ID` returns only those.
    """
    named = [name.strip() for name in query.removeprefix(SELECT).split(",")]
    by_id = {each.name: each for each in tools}
    first = [by_id[name] for name in dict.fromkeys(named) if name in by_id]
    if query.startswith(SELECT):
        return first
    scores = _scores(words(query), [words(_searchable(each)) for each in tools])
    order = sorted(range(len(tools)), key=lambda at: (-scores[at], tools[at].name))
    return [*first, *(tools[at] for at in order if scores[at] > 0 and tools[at] not in first)]


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, split at `_`, `-` and changes of case."""
    return [word.lower() for word in _WORD.findall(text)]


def _searchable(definition: ToolDefinition) -> str:
    arguments = definition.parameters.get("properties", {})
    return " ".join((definition.name, definition.source, definition.description, *arguments))


def _scores(query: Iterable[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25 score of each document, a sequence of words."""
    counts = [Counter(each) for each in documents]
    mean = sum(map(len, documents)) / max(len(documents), 1)
    scores = [0.0] * len(documents)
    for word in dict.fromkeys(query):
        having = [at for at, found in enumerate(counts) if word in found]
        weight = math.log(1 + (len(documents) - len(having) + 0.5) / (len(having) + 0.5))
        for at in having:
            times = counts[at][word]
            length = len(documents[at]) / mean
            scores[at] += weight * times * (K1 + 1) / (times + K1 * (1 - B + B * length))
    return scores
