"""`pegboard plugins`: what is wrong with plugins, what they do, and how they come and go."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from plugins.cli.commands import CommandLine

GOOD = '''
from pegboard import hookimpl, tool

@hookimpl
async def chat_system_transform(system):
    return (*system, "Speak like a sailor.")

@tool
async def sail(to: str) -> str:
    """Sail.

    Args:
        to: where.
    """
    return to

@hookimpl
async def register_tools():
    return [sail]
'''
TOOL = '''
from pegboard import hookimpl, tool

@tool(id="{id}")
async def made(a: int = 1) -> str:
    """Made.

    Args:
        a: one.
    """
    return ""

@hookimpl
async def register_tools():
    return [made]
'''
HOOK = "from pegboard import hookimpl\n\n@hookimpl\n{}\n"
FAULTY = {
    "unreadable": "def (",
    "lacking": "import nowhere_to_be_found",
    "raising": "raise ValueError('at import')",
    "misspelt": HOOK.format("def text_compelte(text): ..."),
    "strange": HOOK.format("def text_complete(txt): ..."),
    "yielding": HOOK.format("def text_complete(text): yield text"),
    "empty": "x = 1",
    "forgotten": GOOD + "\ndef text_complete(text):\n    return text\n",
    "starting": HOOK.format("def startup(app): raise ValueError('no start')"),
    "ending": HOOK.format("def shutdown(app): raise ValueError('no end')"),
    "shadowing": TOOL.format(id="read"),
    "first": TOOL.format(id="twice"),
    "second": TOOL.format(id="twice"),
    "undescribed": TOOL.format(id="silent").replace('    """Made.', '    """'),
    "heavy": "import time; import weighty\n" + GOOD.replace("sail", "row"),
    "twin": HOOK.format("def text_complete(text): ..."),
    "late": HOOK.format("def text_complete(text): ..."),
}
FOUND = {
    ("import", "unreadable"),
    ("import", "lacking"),
    ("import", "raising"),
    ("hook", "misspelt"),
    ("signature", "strange"),
    ("signature", "yielding"),
    ("empty", "empty"),
    ("unmarked", "forgotten"),
    ("hook", "starting"),
    ("hook", "ending"),
    ("replaced", "shadowing"),
    ("clash", "second"),
    ("description", "undescribed"),
    ("slow", "fault_heavy"),
    ("version", "late"),
    ("command", "commanding"),
    ("options", "gaurd"),
}
"""Each fault with the plugin that it is in."""


def distribution(
    site: Path, name: str, points: Mapping[str, Mapping[str, str]], *, requires: str = ""
) -> None:
    """An installed distribution with these entry points."""
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
    sections = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in named.items())
        for group, named in points.items()
    )
    (folder / "entry_points.txt").write_text("\n".join(sections))


def plugin(site: Path, name: str, code: str, *, requires: str = "", owner: str = "") -> None:
    """An installed plugin in a distribution of its own."""
    owner = owner or name
    site.mkdir(exist_ok=True)
    (site / f"fault_{owner}.py").write_text(code)
    distribution(site, owner, {"pegboard": {name: f"fault_{owner}"}}, requires=requires)


def said(text: str) -> Any:
    return json.loads(text)


async def test_the_doctor_finds_each_fault_once(pegboard: CommandLine, tmp_path: Path) -> None:
    site = tmp_path / "site"
    for name, code in FAULTY.items():
        plugin(site, name, code, requires="pegboard>=99" if name == "late" else "")
    plugin(site, "twin", FAULTY["twin"], owner="twin2")
    (site / "weighty.py").write_text("import time; time.sleep(0.15)")
    distribution(site, "commanding", {"pegboard.commands": {"run": "fault_good:run"}})
    pegboard.env["PYTHONPATH"] = str(site)
    pegboard.configure(plugins={"gaurd": {"enabled": False}})

    done = await pegboard("plugins", "doctor", "--format", "json")

    faults = [(each["kind"], each["plugin"]) for each in said(done.out)["faults"]]
    assert done.code == 8, done.err
    assert sorted(plugin for _, plugin in faults) == sorted({*(name for _, name in FOUND), "twin"})
    assert set(FOUND) <= set(faults)
    assert any(each["module"] == "weighty" for each in said(done.out)["imports"])
    assert len(said(done.out)["imports"]) == 3


async def test_the_doctor_finds_nothing_where_nothing_is_wrong(pegboard: CommandLine) -> None:
    done = await pegboard("plugins", "doctor")

    assert (done.code, done.out) == (0, "nothing is wrong\n")


async def test_the_doctor_names_tools_that_take_much_of_each_request(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    plugin(tmp_path, "long", TOOL.format(id="long_a").replace("Made.", "word " * 2_000))
    pegboard.env["PYTHONPATH"] = str(tmp_path)

    heavy = await pegboard("plugins", "doctor")
    pegboard.configure(exposure={"long_*": "deferred"})
    deferred = await pegboard("plugins", "doctor")

    assert "the tools of long take about 2," in heavy.err
    assert "tokens" not in deferred.err


GOING = f"""
from pegboard.kit.deprecation import deprecated

@deprecated("9.1", instead="steer")
def sail_on() -> None: ...

sail_on()
{GOOD}"""


async def test_the_doctor_lists_what_a_plugin_uses_that_goes(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    plugin(site, "sailor", GOING)
    pegboard.env["PYTHONPATH"] = str(site)

    done = await pegboard("plugins", "doctor")

    line = f"{site}/fault_sailor.py:7: sail_on goes in Pegboard 9.1: use steer"
    assert done.code == 0, done.out
    assert line in done.err


async def test_the_doctor_says_what_of_the_configuration_waits_for_trust(
    pegboard: CommandLine,
) -> None:
    (pegboard.project / "pegboard.toml").write_text("[plugins.guard.options]\nx = 1\n")

    done = await pegboard("plugins", "doctor")

    assert (done.code, done.out) == (0, "no plugin has a fault\n")
    assert "pegboard.toml: ignored until you trust this project: plugins" in done.err


async def test_a_trace_tells_who_wrote_what_and_what_it_took(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    plugin(tmp_path / "site", "sailor", GOOD)
    pegboard.env["PYTHONPATH"] = str(tmp_path / "site")
    pegboard.use_model("http://127.0.0.1:9/v1")  # nothing is there: no model is asked

    done = await pegboard("plugins", "trace", "hello", "--format", "json")
    text = await pegboard("plugins", "trace")

    found = said(done.out)
    assert {"plugin": "sailor", "text": "Speak like a sailor."} in found["system"]
    assert {each["plugin"] for each in found["system"]} >= {"environment", "sailor"}
    assert not [each for each in found["timings"] if each["plugin"] == "Scripted"]
    changed = [(each["hook"], each["plugin"]) for each in found["changes"]]
    assert ("chat_system_transform", "sailor") in changed
    (timing,) = [
        each
        for each in found["timings"]
        if (each["plugin"], each["hook"]) == ("sailor", "chat_system_transform")
    ]
    assert (timing["calls"], timing["failures"]) == (1, 0)
    assert "sailor: Speak like a sailor." in text.out
    assert "chat_system_transform: sailor changed it" in text.out
    assert said((await pegboard("session", "list", "--format", "json")).out) == []


async def test_all_about_a_plugin_is_told(pegboard: CommandLine, tmp_path: Path) -> None:
    plugin(tmp_path / "site", "sailor", GOOD, owner="pegboard_sailor")
    pegboard.env["PYTHONPATH"] = str(tmp_path / "site")
    pegboard.configure(plugins={"sailor": {"options": {"ship": "Argo"}}})

    done = await pegboard("plugins", "info", "sailor", "--format", "json")
    assert done.code == 0, done.err
    (found,) = said(done.out)
    text = await pegboard("plugins", "info", "sailor")
    near = await pegboard("plugins", "info", "sailr")

    assert found["distribution"] == "pegboard-sailor 1.0"
    assert (found["tools"], found["permissions"]) == (["sail"], ["sail"])
    assert found["hooks"] == ["register_tools", "chat_system_transform"]
    assert (found["options"], found["state"]) == ({"ship": "Argo"}, "ok")
    assert "distribution  pegboard-sailor 1.0" in text.out
    assert (near.code, "did you mean sailor" in near.err) == (2, True)


async def test_a_plugin_is_switched_off_and_on(pegboard: CommandLine) -> None:
    off = await pegboard("plugins", "disable", "lsp", "--format", "json")
    (during,) = said((await pegboard("plugins", "info", "lsp", "--format", "json")).out)
    on = await pegboard("plugins", "enable", "lsp")
    (after,) = said((await pegboard("plugins", "info", "lsp", "--format", "json")).out)

    assert (off.code, said(off.out)["enabled"]) == (0, False)
    assert (during["state"], after["state"], on.code) == ("blocked", "ok", 0)
    assert (await pegboard("plugins", "disable", "lps")).code == 2


async def test_a_plugin_that_cannot_be_imported_is_switched_off_without_an_import(
    pegboard: CommandLine,
) -> None:
    folder, mark = pegboard.home / "config" / "plugins", pegboard.home / "imported"
    folder.mkdir(parents=True)
    source = f"open({str(mark)!r}, 'w').close()\nraise BaseException('no')\n"
    (folder / "rude.py").write_text(source)

    off = await pegboard("plugins", "disable", "rude")
    on = await pegboard("plugins", "enable", "rude")
    secret = await pegboard("plugins", "secret", "unset", "rude", "key")
    again = await pegboard("plugins", "disable", "rude")
    session = await pegboard("session", "list")

    assert [each.code for each in (off, on, again, session)] == [0, 0, 0, 0]
    assert off.out.startswith("rude is off: ")
    assert on.out.startswith("rude is on: ")
    assert "rude" in secret.out + secret.err
    assert not mark.exists()


@pytest.mark.parametrize(
    ("there", "written"),
    [
        ({}, "pegboard.toml"),
        ({"pegboard.toml": 'model = "a/b" # mine\n'}, "pegboard.toml"),
        ({"opencode.json": '{"model": "a/b"}'}, "pegboard.toml"),
        ({"opencode.json": '{"plugins": {"lsp": {"enabled": true}}}'}, "opencode.json"),
    ],
)
async def test_a_switch_is_written_where_it_stands_already_else_to_the_toml_file(
    pegboard: CommandLine, there: dict[str, str], written: str
) -> None:
    folder = pegboard.home / "config"
    folder.mkdir(exist_ok=True)
    for name, text in there.items():
        (folder / name).write_text(text)

    done = await pegboard("plugins", "disable", "lsp")

    assert done.out.startswith("lsp is off:"), done
    assert str(folder / written) in done.out
    changed = {each.name for each in folder.iterdir() if each.read_text() != there.get(each.name)}
    assert changed == {written}
    assert (
        "# mine" not in there.get("pegboard.toml", "")
        or "# mine" in (folder / "pegboard.toml").read_text()
    )


async def test_a_switch_that_another_word_outweighs_says_so(pegboard: CommandLine) -> None:
    pegboard.env["PEGBOARD_DISABLE_PLUGINS"] = "lsp"

    done = await pegboard("plugins", "enable", "lsp")

    assert done.code == 3
    assert "switched off by PEGBOARD_DISABLE_PLUGINS" in done.err


async def test_the_doctor_finds_a_forgotten_mark_in_a_file_of_the_project(
    pegboard: CommandLine,
) -> None:
    file = pegboard.project / ".pegboard" / "plugins" / "house.py"
    file.parent.mkdir(parents=True)
    file.write_text("async def chat_headers(headers):\n    return None\n\n\n" + GOOD)
    await pegboard("trust", "allow", "--yes")

    done = await pegboard("plugins", "doctor")

    assert "unmarked: house: the function chat_headers is not marked" in done.out
    assert "1 fault\n" in done.out


async def test_the_doctor_finds_no_fault_in_a_file_that_others_import(
    pegboard: CommandLine,
) -> None:
    for folder in ("tool", "plugins"):
        place = pegboard.home / "config" / folder
        place.mkdir(parents=True)
        (place / "sea.py").write_text("from pegboard import tool\nSEA = tool\n")
        (place / "lake.py").write_text("LAKE = 1\n")
        (place / "lonely.py").write_text("x = 1\n")
    (pegboard.home / "config" / "tool" / "ship.py").write_text(
        "from sea import SEA\nfrom . import lake\n@SEA\ndef ship() -> str:\n    'Ship.'\n"
    )
    (pegboard.home / "config" / "plugins" / "boat.py").write_text(
        f"from .sea import SEA\nimport lake\n{GOOD}"
    )

    done = await pegboard("plugins", "doctor", "--format", "json")

    faults = {(each["kind"], each["plugin"]) for each in said(done.out)["faults"]}
    assert faults == {("empty", "tool/lonely.py"), ("empty", "lonely")}


async def test_the_doctor_names_a_plugin_once_in_a_line(pegboard: CommandLine) -> None:
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True)
    (folder / "starting.py").write_text(FAULTY["starting"])

    done = await pegboard("plugins", "doctor")

    (line,) = [each for each in done.out.splitlines() if "starting" in each]
    assert line == "hook: starting: hook startup raised ValueError: no start (starting.py:4)"


async def test_the_doctor_finds_nothing_doubled_where_one_is_switched_off(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    hook = HOOK.format("def text_complete(text): ...")
    plugin(tmp_path / "site", "guard", hook, owner="house")
    pegboard.env["PYTHONPATH"] = str(tmp_path / "site")

    both = await pegboard("plugins", "doctor")
    pegboard.configure(plugins={"house/guard": {"enabled": False}})
    one = await pegboard("plugins", "doctor")

    assert 'a built-in plugin has this name; [plugins."house/guard"] has its' in both.out
    assert (one.code, "doubled" in one.out) == (0, False)


async def test_the_doctor_looks_at_metadata_of_another_name_than_its_folder(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    plugin(tmp_path / "site", "sailor", GOOD, requires="pegboard>=99")
    metadata = tmp_path / "site" / "sailor-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("Name: sailor", "Name: other"))
    pegboard.env["PYTHONPATH"] = str(tmp_path / "site")

    done = await pegboard("plugins", "doctor")

    assert done.code == 8, done.err
    assert done.out.count("needs pegboard>=99") == 1


async def test_the_list_names_the_setting_of_each_tool_that_is_off(pegboard: CommandLine) -> None:
    pegboard.configure(plugins={"batch": {}})

    shown = await pegboard("plugins", "list")
    listed = json.loads((await pegboard("plugins", "list", "--format", "json")).out)

    off = {name: key for each in listed["plugins"] for name, key in each["off"].items()}
    search = "plugins.websearch.options.url"
    assert off == {
        "list": "plugins.list",
        "multiedit": "plugins.multiedit",
        "plan_enter": "plugins.plan",
        "websearch": search,
        "codesearch": search,
    }
    assert "plan_exit, plan_enter (off until plugins.plan)" in shown.out
