"""The output files of a session go with it."""

from pathlib import Path

from pegboard import tool
from pegboard.schema.part import Completed
from support.models.played import HI, Played, ToolsPlugin, call, opened, text, tools_of


async def test_the_output_files_of_a_deleted_session_are_removed(tmp_path: Path) -> None:
    @tool
    async def count() -> str:
        """Count."""
        return "\n".join(map(str, range(50_000)))

    provider = Played(call("count", "{}"), text("done"), call("count", "{}"), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(count)) as app:
        gone, kept = await app.create_session(), await app.create_session()
        files = []
        for session in (gone, kept):
            await app.prompt(session.id, HI)
            [part] = tools_of(await app.list_turns(session.id))
            assert isinstance(part.state, Completed)
            files.append(Path(part.state.metadata["outputPath"]))
        assert all(each.exists() for each in files)
        await app.delete_session(gone.id)

    assert [each.exists() for each in files] == [False, True]
    assert not files[0].parent.exists()
