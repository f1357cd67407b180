"""The reference pages say what the code says."""

import pytest

from docs.reference_pages import PAGES, REFERENCE

WRITE = "PYTHONPATH=tests python -m docs.reference_pages"


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_repeats_the_code(name: str) -> None:
    page = REFERENCE / name

    assert page.read_text() == PAGES[name](), f"write {name} anew with: {WRITE}"
