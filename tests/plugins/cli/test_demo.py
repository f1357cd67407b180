"""`pegboard demo`: the whole engine at work on the small project, without network or key."""

from pathlib import Path

from plugins.cli.commands import CommandLine


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("pegboard-demo-*"))


async def test_the_demo_mends_the_project_and_leaves_nothing(pegboard: CommandLine) -> None:
    pegboard.env["TMPDIR"] = str(pegboard.home)

    done = await pegboard("demo")

    assert done.code == 0
    assert "FAILED (failures=2)" in done.err
    assert "+     share, rest = divmod(total_cents, people)" in done.err
    assert done.err.endswith("\nOK\n")
    assert "split()" in done.out
    assert "\x1b" not in done.err + done.out
    assert left_in(pegboard.home) == []
    assert not (pegboard.home / "data").exists()


async def test_a_demo_whose_model_cannot_be_asked_fails_and_is_kept_where_it_says(
    pegboard: CommandLine,
) -> None:
    pegboard.env["TMPDIR"] = str(pegboard.home)

    done = await pegboard("demo", "--keep", "-m", "openai/gpt-5")

    assert done.code == 4
    assert "OPENAI_API_KEY" in done.err
    (name,) = left_in(pegboard.home)
    assert f"saved in {pegboard.home / name}" in done.err
    assert (pegboard.home / name / "ledger" / "README.md").exists()
