"""A foreign JSON Schema: its limits, and validation within a time limit.

Such a schema may be slow: expressions backtrack, references recurse, choices multiply. Therefore
its size is limited before use, and a validation that takes too long ends without a result. Run
validation in a thread.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from itertools import islice
from time import thread_time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

LIMIT_S = 0.3
"""Of the processor's time, for a check of arguments: enough for some ten thousand values."""
MOST_LETTERS = 1 << 18
"""Of all names and texts; the model has to read them with each request."""
MOST_NODES = 20_000
"""Objects, arrays and values in them."""
MOST_NESTED = 64
"""Objects and arrays in each other: for each one a check goes some calls deeper."""

_Problems = Iterable["ValidationError"]
_Check = Callable[..., _Problems]

_ENDS_AT: ContextVar[float] = ContextVar("pegboard_check_ends_at")


class UndecidedError(Exception):
    """The error of a schema check without a result: an unsupported keyword, or the time limit."""


def excess(schema: Mapping[str, Any]) -> str:
    """Return a description of the size limit that the schema exceeds, or "" if it exceeds none.

    The function also ends for a schema object that contains itself.
    """
    level: list[object] = [schema]
    letters = nodes = 0
    for _ in range(MOST_NESTED + 1):
        nodes += len(level)
        letters += sum(map(_letters, level))
        if nodes > MOST_NODES:
            return f"has more than {MOST_NODES:,} values"
        if letters > MOST_LETTERS:
            return f"has more than {MOST_LETTERS:,} letters"
        members = (member for each in level for member in _members(each))
        level = list(islice(members, MOST_NODES + 1))
        if not level:
            return ""
    return f"is nested more than {MOST_NESTED} deep"


def _letters(value: object) -> int:
    """Return the length of a string, or the total length of the names in an object."""
    if isinstance(value, Mapping):
        return sum(len(name) for name in value if isinstance(name, str))
    return len(value) if isinstance(value, str) else 0


def _members(value: object) -> Sequence[object]:
    if isinstance(value, Mapping):
        return tuple(value.values())
    return value if isinstance(value, list | tuple) else ()


def validator_of(schema: Mapping[str, Any]) -> "Validator":
    """Return a validator for the schema that raises `UndecidedError` at its time limit.

    :raises ValueError: when the schema is invalid; the message names the location.
    """
    from jsonschema.exceptions import best_match
    from jsonschema.validators import Draft202012Validator, extend, validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    dialect = validator_for(schema, default=Draft202012Validator)
    known = {name: _in_time(check) for name, check in dialect.VALIDATORS.items()}
    ours = {name: check for name, check in _OURS.items() if name in known}
    kind: type[Validator] = extend(dialect, {**known, **ours})  # type: ignore[no-untyped-call]  # theirs
    wrong = best_match(iter(problems(kind(kind.META_SCHEMA), schema, most=MOST_NODES)))
    if wrong is not None:
        raise ValueError(f"at {wrong.json_path}: {wrong.message}")
    return kind(dict(schema), registry=EMPTY_REGISTRY)


def problems(
    validator: "Validator",
    args: Any,  # noqa: ANN401 - JSON
    *,
    most: int,
) -> list["ValidationError"]:
    """Return the first `most` errors that the validator finds in the arguments.

    The list ends early if a decision needs the network, a regular expression of another dialect, or
    more than `LIMIT_S`. The tool must then check the arguments itself.
    """
    from referencing.exceptions import Unresolvable

    found: list[ValidationError] = []
    around = _ENDS_AT.set(thread_time() + LIMIT_S)
    try:
        for problem in islice(validator.iter_errors(args), most):
            found.append(problem)  # noqa: PERF402 - what was found before an error counts
    except (Unresolvable, UndecidedError, RecursionError):
        pass
    finally:
        _ENDS_AT.reset(around)
    return found


def _left_s() -> float:
    left_s = _ENDS_AT.get() - thread_time()
    if left_s <= 0:
        raise UndecidedError
    return left_s


def _in_time(check: _Check) -> _Check:
    """Wrap the check of a keyword so that it raises `UndecidedError` after the time limit."""

    def checked(validator: Any, wanted: Any, args: Any, schema: Any) -> Any:  # noqa: ANN401 - theirs
        _left_s()
        return check(validator, wanted, args, schema)

    return checked


def _fits(pattern: str, text: str) -> bool:
    """Return whether the pattern matches in the text; `UndecidedError` if it takes too long."""
    import regex  # type: ignore[import-untyped]  # 20 ms that only schemas with expressions pay

    try:
        # The loop goes on meanwhile, whatever thread this is.
        return bool(regex.search(pattern, text, timeout=_left_s(), concurrent=True))
    except (TimeoutError, regex.error, OverflowError) as error:
        raise UndecidedError from error


def _pattern(validator: Any, wanted: str, text: Any, _: object) -> _Problems:  # noqa: ANN401 - JSON
    from jsonschema.exceptions import ValidationError

    if validator.is_type(text, "string") and not _fits(wanted, text):
        yield ValidationError(f"{text!r} does not match {wanted!r}")


def _pattern_properties(
    validator: Any,  # noqa: ANN401 - has no type that fits
    wanted: Mapping[str, Any],
    members: Any,  # noqa: ANN401 - JSON
    _: object,
) -> _Problems:
    if not validator.is_type(members, "object"):
        return
    for pattern, schema in wanted.items():
        for name, member in members.items():
            if _fits(pattern, name):
                yield from validator.descend(member, schema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any,  # noqa: ANN401 - has no type that fits
    wanted: object,
    members: Any,  # noqa: ANN401 - JSON
    schema: Mapping[str, Any],
) -> _Problems:
    """Check `additionalProperties`, ignoring members that match `patternProperties`."""
    from jsonschema.validators import Draft202012Validator

    named = schema.get("patternProperties", {})
    if validator.is_type(members, "object") and named:
        members = {
            name: member
            for name, member in members.items()
            if not any(_fits(pattern, name) for pattern in named)
        }
    plain = {"properties": schema.get("properties", {})}
    check = Draft202012Validator.VALIDATORS["additionalProperties"]
    return check(validator, wanted, members, plain) or ()


def _unique_items(validator: Any, wanted: object, items: Any, _: object) -> _Problems:  # noqa: ANN401
    """Check `uniqueItems` in linear time; jsonschema's own check takes quadratic time."""
    from jsonschema.exceptions import ValidationError

    if wanted and validator.is_type(items, "array") and len(set(map(_frozen, items))) < len(items):
        yield ValidationError("an item is there more than once")


def _frozen(value: object) -> object:
    """Return a hashable value that is equal for equal JSON: 1 equals 1.0, but not true."""
    if isinstance(value, dict):
        return dict, frozenset((name, _frozen(member)) for name, member in value.items())
    if isinstance(value, list):
        return list, tuple(map(_frozen, value))
    return isinstance(value, bool), value


def _undecided(*_: object) -> _Problems:
    """Raise `UndecidedError` for a keyword that runs expressions or takes quadratic time."""
    raise UndecidedError


_OURS: Mapping[str, _Check] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
    "unevaluatedItems": _undecided,
    "unevaluatedProperties": _undecided,
}
