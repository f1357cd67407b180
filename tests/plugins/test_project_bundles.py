"""Bundles in a project's folders: they act after trust, and a change ends that."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard import App
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard_plugins.shared.frontend.bundlemanifest import SCHEMAS
from support.plugins.hook_house import SHELL, House

PLACE = ".agents/plugins/rules"
BUNDLE = ("plugins", "bundle")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def write(root: Path, name: str, content: object) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def bundle_at(root: Path, *, name: str = "house-rules", script: str = "exit 2") -> Path:
    """Write a plugin of Claude Code with a part of each kind, whose hook runs a script."""
    write(root, ".claude-plugin/plugin.json", {"name": name, "version": "1.0"})
    write(root, "commands/greet.md", "Greet $ARGUMENTS.")
    write(root, "agents/judge.md", "---\nname: judge\ndescription: Judges.\n---\nJudge it.")
    write(root, "skills/release/SKILL.md", "---\nname: release\ndescription: d\n---\nTag it.")
    command = {"type": "command", "command": 'sh "${CLAUDE_PLUGIN_ROOT}"/check.sh'}
    write(root, "hooks/hooks.json", {"hooks": {"PreToolUse": [{"hooks": [command]}]}})
    write(root, ".mcp.json", {"mcpServers": {"tickets": {"command": "./serve"}}})
    write(root, "check.sh", f'echo "the bundle says no" >&2; {script}\n')
    return root


def pegboard(house: House, *words: str) -> subprocess.CompletedProcess[str]:
    code = "from pegboard.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "-C", str(house.project), *words],
        env=house.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def rows(house: House) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(
        pegboard(house, *BUNDLE, "list", "--format", "json").stdout
    )
    return found


async def acting(house: House, **options: object) -> set[str]:
    """Return the parts of bundles that act in a new App; "hook" if the call was denied."""
    (house.project / "ran.txt").unlink(missing_ok=True)
    script = {"steps": [{"calls": [SHELL]}, {"text": "."}]}
    async with house.played([script], **options) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        parts = {each for each in (*app.commands, *app.agents) if "house" in each}
        parts |= {each for each in app.config.mcp if each == "tickets"}
        turns = await app.list_turns(session.id)
    (call,) = [each for turn in turns for each in turn.parts if isinstance(each, ToolPart)]
    assert isinstance(call.state, Completed | Failed)
    return parts | ({"hook"} if isinstance(call.state, Failed) else set())


ALL = {"house-rules:greet", "house-rules:judge", "tickets", "hook"}


@pytest.mark.parametrize("place", [PLACE, ".pegboard/bundles/rules"])
@pytest.mark.parametrize("command", [(*BUNDLE, "trust"), ("trust", "allow")])
async def test_a_bundle_of_a_project_acts_after_trust(
    house: House, place: str, command: tuple[str, ...]
) -> None:
    bundle_at(house.project / place)

    assert await acting(house) == set()
    assert [(each["place"], each["trusted"]) for each in rows(house)] == [(place, False)]

    house.trust(*command, *([place] if command[0] == "plugins" else []))

    assert await acting(house) == ALL
    assert [(each["place"], each["trusted"]) for each in rows(house)] == [(place, True)]


async def test_trust_for_one_run_is_for_bundles_too(house: House) -> None:
    bundle_at(house.project / PLACE)

    assert await acting(house, trust=True) == ALL
    assert await acting(house) == set()


async def test_a_skill_of_a_bundle_of_a_project_can_be_read_after_trust(house: House) -> None:
    bundle_at(house.project / PLACE, script="exit 0")
    call = {"tool": "skill", "input": {"name": "release"}}
    await house.run(call)
    before = str(house.ended)
    house.trust(*BUNDLE, "trust", "rules")
    await house.run(call)

    assert "Tag it." not in before
    assert isinstance(house.ended, Completed)
    assert "Tag it." in house.ended.output


def test_a_run_names_a_bundle_that_is_not_trusted_and_the_command(house: House) -> None:
    bundle_at(house.project / ".agents" / "plugins" / "two words")
    model = house.scripted([{"steps": [{"text": "Done."}]}])
    done = pegboard(house, "run", "-m", model, "Hi")

    assert "pegboard plugins bundle trust '.agents/plugins/two words'" in done.stderr, done
    assert done.stdout.strip() == "Done."


def test_trust_without_a_terminal_needs_yes(house: House) -> None:
    bundle_at(house.project / PLACE)
    done = pegboard(house, *BUNDLE, "trust", PLACE)

    assert done.returncode != 0
    assert f"pegboard plugins bundle trust {PLACE} --yes" in done.stderr
    assert [each["trusted"] for each in rows(house)] == [False]


def test_a_bundle_is_copied_into_a_project_and_removed_again(house: House, tmp_path: Path) -> None:
    source = bundle_at(tmp_path / "source")
    added = house.trust(*BUNDLE, "add", str(source), "--project")
    copied = house.project / ".pegboard" / "bundles" / "house-rules"
    place = ".pegboard/bundles/house-rules"

    assert "hook: PreToolUse" in added
    assert (copied / "check.sh").exists()
    assert [(each["place"], each["trusted"]) for each in rows(house)] == [(place, True)]

    asked = pegboard(house, *BUNDLE, "remove", "house-rules")
    assert place in asked.stderr
    assert copied.exists()
    house.trust(*BUNDLE, "remove", "house-rules")
    assert not copied.exists()
    assert rows(house) == []


async def test_trust_is_taken_back_with_that_of_the_project(house: House) -> None:
    bundle_at(house.project / PLACE)
    house.trust(*BUNDLE, "trust", PLACE)
    pegboard(house, "trust", "revoke")

    assert await acting(house) == set()


async def test_one_bundle_s_trust_is_not_that_of_another(house: House) -> None:
    bundle_at(house.project / PLACE)
    bundle_at(house.project / ".agents/plugins/other", name="house-other")
    printed = house.trust(*BUNDLE, "trust", PLACE)

    assert "pegboard trust allow" in printed
    assert await acting(house) == set()


Change = Callable[[House, Path], object]


def _trap(house: House) -> str:
    return f"touch {house.trap}; exit 2"


def _linked_out(house: House, bundle: Path) -> None:
    outside = bundle_at(house.project.parent / "outside", script=_trap(house))
    shutil.rmtree(bundle)
    bundle.symlink_to(outside)


def _place_linked_out(house: House, bundle: Path) -> None:
    bundle_at(house.project.parent / "outside" / "rules", script=_trap(house))
    shutil.rmtree(bundle.parent)
    bundle.parent.symlink_to(house.project.parent / "outside")


def _script_linked(house: House, bundle: Path) -> None:
    target = write(house.project, "elsewhere.sh", _trap(house))
    (bundle / "check.sh").unlink()
    (bundle / "check.sh").symlink_to(target)


def _twin(house: House, bundle: Path) -> None:
    """Write a second bundle with the name of the trusted one, which sorts before it."""
    bundle_at(bundle.with_name("a-twin"), script=_trap(house))


def _moved(house: House, bundle: Path) -> None:
    bundle.rename(bundle.with_name("moved"))
    write(bundle.with_name("moved"), "check.sh", _trap(house))


def _above(house: House, bundle: Path) -> None:
    """Name hooks and agents outside of the bundle in its manifest."""
    write(house.project, "hooks.json", (bundle / "hooks" / "hooks.json").read_text())
    facts = {"name": "house-rules", "hooks": "../../../hooks.json", "agents": "../../../agents"}
    write(bundle, ".claude-plugin/plugin.json", facts)
    write(house.project, "check.sh", _trap(house))


def _in_git_folder(house: House, bundle: Path) -> None:
    write(bundle, ".git/check.sh", _trap(house))


def _bytecode(house: House, bundle: Path) -> None:
    write(bundle, "__pycache__/check.cpython-311.pyc", _trap(house))


def _both_forms(house: House, bundle: Path) -> None:
    """Give the folder a second manifest, with a server of its own."""
    facts = {"$schema": f"{SCHEMAS}/plugin.schema.json", "name": "house-rules"}
    write(bundle, "plugin.json", facts)
    server = {"type": "stdio", "command": "sh", "args": ["-c", _trap(house)]}
    mcp = {"$schema": f"{SCHEMAS}/mcp.schema.json", "mcpServers": {"tickets": server}}
    write(bundle, "mcp.json", mcp)


def _same_size_and_time(house: House, bundle: Path) -> None:
    script = bundle / "check.sh"
    facts, size = script.stat(), len(script.read_bytes())
    script.write_text(_trap(house).ljust(size)[: max(size, len(_trap(house)))])
    os.utime(script, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _other_case(house: House, bundle: Path) -> None:
    """Spell the place in capitals, which is another folder or the same one, changed."""
    bundle_at(house.project / ".Agents" / "Plugins" / "rules", script=_trap(house))
    bundle_at(bundle.with_name("RULES"), script=_trap(house))
    write(bundle, "Check.sh", _trap(house))


@pytest.mark.parametrize(
    "change",
    [
        lambda house, bundle: write(bundle, "check.sh", _trap(house)),
        lambda house, bundle: write(bundle, "lib/new.sh", _trap(house)),
        _linked_out,
        _place_linked_out,
        _script_linked,
        _twin,
        _moved,
        _above,
        _in_git_folder,
        _bytecode,
        _both_forms,
        _same_size_and_time,
        _other_case,
    ],
)
async def test_nothing_runs_of_a_trusted_bundle_that_is_not_as_it_was(
    house: House, change: Change
) -> None:
    bundle = bundle_at(house.project / PLACE)
    house.trust(*BUNDLE, "trust", PLACE)
    change(house, bundle)

    assert not await acting(house) & ALL
    assert not house.sprung


async def test_a_bundle_that_changes_while_the_project_is_open_acts_no_more(house: House) -> None:
    bundle = bundle_at(house.project / PLACE)
    house.trust(*BUNDLE, "trust", PLACE)
    async with house.played([{"steps": [{"calls": [SHELL]}, {"text": "."}]}]) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        denied = not house.ran
        write(bundle, "check.sh", _trap(house))
        await app.prompt(session, "Do it")

    assert denied
    assert not house.sprung
    assert house.ran


async def test_an_installed_bundle_wins_over_one_of_the_project_with_its_name(
    house: House, tmp_path: Path
) -> None:
    house.trust(*BUNDLE, "add", str(bundle_at(tmp_path / "source")))
    bundle_at(house.project / PLACE, script=_trap(house))
    bundle_at(house.project / ".agents/plugins/z", name="house-z")
    write(house.project / ".agents/plugins/z", ".mcp.json", {"tickets": {"command": "./trap"}})
    house.trust("trust", "allow")

    assert await acting(house) == {*ALL, "house-z:greet", "house-z:judge"}
    assert not house.sprung
    async with App.open(house.project, house.options()) as app:
        (program, *_) = app.config.mcp["tickets"]["command"]
    assert Path(program).is_relative_to(tmp_path / "data")


async def test_a_script_outside_of_the_bundle_that_its_hook_names_may_not_change(
    house: House,
) -> None:
    bundle = bundle_at(house.project / PLACE)
    command = {"type": "command", "command": 'sh "$CLAUDE_PROJECT_DIR"/own.sh'}
    write(bundle, "hooks/hooks.json", {"hooks": {"PreToolUse": [{"hooks": [command]}]}})
    script = write(house.project, "own.sh", "exit 2\n")
    house.trust("trust", "allow")
    assert "hook" in await acting(house)

    script.write_text(f"{_trap(house)}\n")
    assert "hook" not in await acting(house)
    assert not house.sprung


def test_a_folder_with_too_much_in_it_is_no_bundle(house: House) -> None:
    bundle = bundle_at(house.project / PLACE)
    with (bundle / "model.bin").open("wb") as file:
        file.truncate((8 << 20) + 1)

    (row,) = rows(house)
    assert "8 MiB" in str(row["source"])
    assert not row["trusted"]
    assert pegboard(house, *BUNDLE, "trust", PLACE, "--yes").returncode != 0
