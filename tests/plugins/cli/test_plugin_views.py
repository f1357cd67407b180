"""What a user and an editor are shown of plugins: their order, their options, their faults."""

import json
from pathlib import Path

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, say

FILTER = """
import msgspec
from pegboard import hookimpl
from pegboard.plugins import Secret

class options(msgspec.Struct):
    volume: int = 1
    passcode: Secret = ""

@hookimpl({said})
async def text_complete({argument}):
    return None
"""
PLAIN = {"said": "", "argument": "text"}


def install(pegboard: CommandLine, name: str, source: str) -> None:
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(source)


async def test_the_order_of_a_hook_s_calls_is_shown(pegboard: CommandLine) -> None:
    install(pegboard, "anna", FILTER.format(**PLAIN))
    install(pegboard, "berta", FILTER.format(said="before=['anna']", argument="text"))
    install(pegboard, "clara", FILTER.format(said="wrapper=True", argument="call"))
    install(pegboard, "dora", FILTER.format(said="requires=['nobody']", argument="text"))

    done = await pegboard("plugins", "list", "--hook", "text_complete", "--format", "json")
    near = await pegboard("plugins", "list", "--hook", "text_compelte")

    assert [each["name"] for each in json.loads(done.out)["plugins"]] == ["clara", "berta", "anna"]
    assert (near.code, "did you mean text_complete" in near.err) == (2, True)


async def test_the_first_to_answer_is_shown_first(pegboard: CommandLine) -> None:
    source = "from pegboard import hookimpl\n@hookimpl\ndef model_resolve(name):\n    return None\n"
    install(pegboard, "anna", source)
    install(pegboard, "berta", source)

    done = await pegboard("plugins", "list", "--hook", "model_resolve", "--format", "json")

    assert [each["name"] for each in json.loads(done.out)["plugins"]] == ["berta", "anna"]


async def test_options_have_a_schema_for_editors(pegboard: CommandLine) -> None:
    install(pegboard, "anna", FILTER.format(**PLAIN))

    (found,) = json.loads((await pegboard("plugins", "info", "anna", "--format", "json")).out)
    (none,) = json.loads((await pegboard("plugins", "info", "read", "--format", "json")).out)

    (model,) = found["schema"]["$defs"].values()
    assert model["properties"]["volume"] == {"type": "integer", "default": 1}
    assert none["schema"] == {}


FAULTY = {
    "syntax": "def (",
    "missing": "import no_such_module\n",
    "unannotated": "from pegboard import tool\n@tool\ndef x(*args):\n    return ''\n",
    "first": "from pegboard import tool\n@tool(id='twice')\ndef a() -> str:\n    return ''\n",
    "second": "from pegboard import tool\n@tool(id='twice')\ndef b() -> str:\n    return ''\n",
}


def write_tools(project: Path) -> None:
    folder = project / ".pegboard" / "tool"
    folder.mkdir(parents=True)
    for name, source in FAULTY.items():
        (folder / f"{name}.py").write_text(source)


async def test_what_stays_wrong_takes_one_line_of_each_run(
    pegboard: CommandLine,
) -> None:
    write_tools(pegboard.project)
    async with ModelServer(by_step(say("done"))) as server:
        pegboard.use_model(server.url, title="off")
        first = await pegboard("run", "--trust", "hi")
        later = await pegboard("run", "--trust", "hi")
        await pegboard("trust", "allow", "--yes")
        doctor = await pegboard("plugins", "doctor")

    assert (first.code, later.code) == (0, 0)
    for done in (first, later):
        assert sum("warning:" in line for line in done.err.splitlines()) == 1, done.err
    for name in ("syntax", "missing", "unannotated", "second"):
        assert sum(f"{name}.py" in line for line in doctor.out.splitlines()) == 1, doctor.out
    assert len(later.err.splitlines()) <= 2, later.err


def package(site: Path, name: str, group: str, code: str) -> None:
    """The installed distribution `house-NAME` with one entry point."""
    facts = site / f"house_{name}-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: house-{name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{group}]\n{name} = house_{name}\n")
    (site / f"house_{name}.py").write_text(code)


async def test_a_plugin_that_is_called_like_a_built_in_one_goes_by_the_name_of_its_settings(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    package(tmp_path / "site", "guard", "pegboard", FILTER.format(**PLAIN))
    pegboard.env["PYTHONPATH"] = str(tmp_path / "site")

    both = await pegboard("plugins", "info", "guard", "--format", "json")
    (own, *_) = json.loads(
        (await pegboard("plugins", "info", "house-guard/guard", "--format", "json")).out
    )
    text = await pegboard("plugins", "info", "guard")
    off = await pegboard("plugins", "disable", "house-guard/guard", "--format", "json")
    blocked = [
        (each["origin"], each["state"])
        for each in json.loads((await pegboard("plugins", "list", "--format", "json")).out)[
            "plugins"
        ]
        if each["name"] == "guard"
    ]

    assert {"guard", "house-guard/guard"} <= {each["settings"] for each in json.loads(both.out)}
    assert (own["distribution"], own["options"]) == ("house-guard 1.0", {})
    assert "settings      house-guard/guard" in text.out
    assert json.loads(off.out)["enabled"] is False
    assert [blocked[0], *set(blocked[1:])] == [("builtin", "ok"), ("installed", "blocked")]


async def test_options_of_the_wrong_one_of_two_plugins_say_where_the_other_has_its_own(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    package(tmp_path / "site", "guard", "pegboard", FILTER.format(**PLAIN))
    pegboard.env["PYTHONPATH"] = str(tmp_path / "site")
    pegboard.configure(plugins={"guard": {"options": {"volume": 2}}})

    done = await pegboard("plugins", "list")

    where = 'the options of the other of this name stand in [plugins."house-guard/guard"]'
    assert f"unknown option; this plugin has none; {where}" in done.err


async def test_the_commands_of_packages_are_listed_and_are_no_plugins(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    package(tmp_path / "site", "ledger", "pegboard.commands", "")
    pegboard.env["PYTHONPATH"] = str(tmp_path / "site")

    listed = await pegboard("plugins", "list")
    found = json.loads((await pegboard("plugins", "list", "--format", "json")).out)["commands"]
    done = await pegboard("plugins", "info", "ledger")

    assert "command: ledger (house-ledger)" in listed.err
    assert ("ledger", "house-ledger") in [(each["name"], each["distribution"]) for each in found]
    assert done.code == 2
    assert "ledger is not a plugin but a command of house-ledger" in done.err


async def test_plugins_that_are_blocked_for_one_reason_take_one_line(
    pegboard: CommandLine,
) -> None:
    for name in ("anna", "berta"):
        path = pegboard.project / ".pegboard" / "plugins" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILTER.format(**PLAIN))

    done = await pegboard("plugins", "list")

    (line,) = [each for each in done.err.splitlines() if "not run: " in each]
    assert line.startswith("blocked: anna, berta: not run: ")
    assert "berta.py are not trusted yet; " in line


async def test_the_default_rules_of_a_plugin_are_shown(pegboard: CommandLine) -> None:
    source = (
        "from pegboard import hookimpl\nfrom pegboard.schema.session import Rule\n"
        "@hookimpl\ndef register_permissions():\n"
        "    return (Rule('deploy', 'live *', 'deny'),)\n"
    )
    install(pegboard, "anna", source)

    (found,) = json.loads((await pegboard("plugins", "info", "anna", "--format", "json")).out)

    assert found["rules"] == ['deploy "live *" = "deny"']
