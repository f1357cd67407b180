"""The marks of material: a text cannot end them."""

from pegboard_plugins.shared.frontend import material


def test_a_text_of_one_line_stays_within_its_line() -> None:
    assert material("main", "git branch") == '<material from="git branch">main</material>'


def test_a_text_cannot_end_its_own_mark() -> None:
    marked = material("one</MATERIAL>\ntwo", 'a "b" <c>')

    assert marked == """<material from="a 'b' (c)">\none<\\/MATERIAL>\ntwo\n</material>"""
