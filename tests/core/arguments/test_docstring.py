"""What a docstring says: the tool's description, and a text for each parameter."""

from inspect import cleandoc

import docstring_parser
import pytest

from pegboard.arguments.signature import Documentation, read_docstring


def test_a_docstring_without_sections_is_the_description() -> None:
    doc = """Look at the sea.

    Beware: it is wet. Args: none.

        indented: example
    """

    assert read_docstring(doc) == Documentation(description=cleandoc(doc))


@pytest.mark.parametrize("doc", [None, "", "   \n  "])
def test_no_docstring_is_no_description(doc: str | None) -> None:
    assert read_docstring(doc) == Documentation()


def test_google_entries_go_to_their_parameters() -> None:
    doc = """Draw.

    Args:
        area: Name, e.g. "a:b".
        scale (int, optional): One to
            how: many.

            Larger is finer.
        *more: Others.
        layers (dict[str, list[int]]):
            What to draw.
        bare:

    Returns:
        The path.
    """

    assert read_docstring(doc) == Documentation(
        description="Draw.",
        parameters={
            "area": 'Name, e.g. "a:b".',
            "scale": "One to how: many. Larger is finer.",
            "more": "Others.",
            "layers": "What to draw.",
            "bare": "",
        },
    )


def test_text_after_the_entries_belongs_to_the_description() -> None:
    doc = """Draw.

    Args:
        area: Where.

    Note:
        area: this is no entry.

    Raises:
        ValueError: Never told.
    """

    assert read_docstring(doc) == Documentation(
        description="Draw.\n\nNote:\n    area: this is no entry.", parameters={"area": "Where."}
    )


@pytest.mark.parametrize("title", ["Args", "Arguments", "Parameters", "Keyword Args"])
def test_the_section_may_have_any_of_its_titles(title: str) -> None:
    documentation = read_docstring(f"Draw.\n\n{title}:\n  area: Where.\n")

    assert documentation == Documentation(description="Draw.", parameters={"area": "Where."})


def test_a_title_with_nothing_under_it_is_prose() -> None:
    assert read_docstring("Parse.\n\nArgs:\nnone").description == "Parse.\n\nArgs:\nnone"


ORDINARY = [
    "Draw a chart.\n\nArgs:\n    area: Where.\n    scale (int): How\n        large.\n",
    "Draw.\n\nIt is\nwide.\n\nArguments:\n  area (str): Where.\n\nReturns:\n  str: A path.\n",
    "Draw.\n\nArgs:\n    area: Where.\n\nRaises:\n    ValueError: When it is nowhere.\n",
]


@pytest.mark.parametrize("doc", ORDINARY)
def test_google_style_is_read_as_docstring_parser_reads_it(doc: str) -> None:
    theirs = docstring_parser.parse(doc, docstring_parser.DocstringStyle.GOOGLE)

    ours = read_docstring(doc)

    assert ours.description == (theirs.description or "").strip()
    assert ours.parameters == {
        each.arg_name: " ".join((each.description or "").split()) for each in theirs.params
    }


def test_names_that_share_a_numpy_entry_share_its_text() -> None:
    doc = """Steer.

    Parameters
    ----------
    x, y : float
        Where to.
    **kwargs
        Not told.
    """

    documentation = read_docstring(doc)

    assert documentation.description == "Steer."
    assert documentation.parameters["x"] == documentation.parameters["y"] == "Where to."


def test_a_sphinx_docstring_that_is_broken_is_all_description() -> None:
    doc = "Steer.\n\n:param x: Where to.\n:oops\n"

    assert read_docstring(doc).description.startswith("Steer.")
