"""The card of keys that `?` shows."""

from pegboard_plugins.chat.keys import KEYS
from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine


def test_each_key_has_its_words_on_the_card() -> None:
    assert [each.name for each in KEYS if not 0 < len(each.short) <= 26] == []


async def test_the_card_of_keys_fits_in_a_window_of_24_rows(pegboard: CommandLine) -> None:
    scripts(pegboard, settings={"plugins": {"chat": {"options": {"keys": {"output": "c-y"}}}}})
    async with chat(pegboard, columns=80, rows=24) as terminal:
        terminal.press("?")
        await terminal.see_now("these keys")
        await terminal.quiet()
        rows = [row for row in terminal.shown if row.strip()]
        begin = next(n for n, row in enumerate(rows) if row.startswith("Keys: "))
        card = "\n".join(rows[begin:])
        assert all(each.short in card for each in KEYS)
        assert "Ctrl+Y" in card
        assert "Ctrl+O" not in card
    async with chat(pegboard, columns=40, rows=40) as terminal:
        terminal.press("?")
        await terminal.see_now("these keys")
