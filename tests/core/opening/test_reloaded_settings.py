"""Settings that the user trusts while the App is open: agents and commands count at once."""

from pathlib import Path

from pegboard.unstable import TrustStore
from support.models.played import Played, opened


async def test_commands_and_agents_of_settings_count_with_the_users_trust_and_end_with_it(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    command = project / ".pegboard" / "command" / "deploy.md"
    command.parent.mkdir(parents=True)
    command.write_text("Deploy it.")
    settings = project / "pegboard.toml"
    settings.write_text("model = 'played/m'\n[agent.tester]\nprompt = 'Test it.'\n")
    store = TrustStore(tmp_path / "state" / "trust.json")

    async with opened(tmp_path, Played()) as app:
        names = [{*app.commands, *app.agents}]
        files = (command, settings)
        store.allow(store.decide(directory=project, worktree=project, config_files=files))
        await app.reload_project_code()
        names.append({*app.commands, *app.agents})
        told = [each.message for each in app.failures]
        store.revoke(project)
        await app.reload_project_code()
        names.append({*app.commands, *app.agents})

    assert [each & {"deploy", "tester"} for each in names] == [set(), {"deploy", "tester"}, set()]
    (line,) = told
    assert "pegboard.toml sets, except agents and commands, counts once the project is" in line
