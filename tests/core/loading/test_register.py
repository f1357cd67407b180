"""The register: order, blocking, loading, reports, and one bad plugin that fails alone."""

import sys

import pytest

from pegboard import hookimpl, tool
from pegboard.contract import modelhooks
from pegboard.loading.register import PluginInfo, Register
from pegboard.schema.config import Config, PluginConfig
from pegboard.trust.decisions import TrustStore
from support.plugins.plugin_places import Places
from support.sessions.session_views import MODEL, view

SHOUT = (
    "from pegboard import hookimpl\n\n"
    "@hookimpl\ndef chat_system_transform(system):\n    return (*system, {text!r})\n"
)


async def system(register: Register, places: Places) -> tuple[str, ...]:
    known = {"session": view(places.project), "model": MODEL, "system": ("first",)}
    return await register.hooks.fold(modelhooks.chat_system_transform, **known)


def told(register: Register) -> list[tuple[str, str]]:
    return [(problem.kind, problem.plugin) for problem in register.problems]


async def test_the_order_is_built_in_installed_user_project_embedded(places: Places) -> None:
    places.write("project/.pegboard/plugins/late.py", SHOUT.format(text="project"))
    places.write("user/plugins/mine.py", SHOUT.format(text="user"))
    places.install("zebra", SHOUT.format(text="zebra"))
    places.install("apple", SHOUT.format(text="apple"))

    class Embedded:
        @hookimpl
        async def chat_system_transform(self, system: tuple[str, ...]) -> tuple[str, ...]:
            return (*system, "embedded")

    register = await places.load(extra=(Embedded(),))

    assert await system(register, places) == (
        "first", "apple", "zebra", "user", "project", "embedded",
    )  # fmt: skip
    assert [(info.name, info.origin, info.version) for info in register.infos] == [
        ("apple", "installed", "2.5"),
        ("zebra", "installed", "2.5"),
        ("mine", "user", ""),
        ("late", "project", ""),
        ("Embedded", "embedded", ""),
    ]
    assert register.problems == ()


async def test_the_built_in_plugins_come_first(places: Places) -> None:
    places.install("aaa", SHOUT.format(text="installed"))

    register = await places.load(builtins=True)

    origins = [info.origin for info in register.infos]
    assert origins == ["builtin"] * (len(origins) - 1) + ["installed"]


async def test_installed_plugins_can_be_left_out(places: Places) -> None:
    places.install("apple", SHOUT.format(text="apple"))

    register = await places.load(installed=False)

    assert register.infos == ()


@pytest.mark.parametrize(
    ("config", "env", "says"),
    [
        (Config(plugins={"apple": PluginConfig(enabled=False)}), {}, "plugins.apple.enabled"),
        (Config(), {"PEGBOARD_DISABLE_PLUGINS": "other, apple"}, "PEGBOARD_DISABLE_PLUGINS"),
    ],
)
async def test_a_blocked_plugin_is_not_even_imported(
    places: Places, config: Config, env: dict[str, str], says: str
) -> None:
    places.install("apple", "open(__file__ + '.ran', 'w').close()")

    register = await places.load(config=config, env=env)

    (info,) = register.infos
    assert info.blocked
    assert says in info.error
    assert not (places.site / "apple_module.py.ran").exists()
    assert register.problems == ()


async def test_the_code_of_an_untrusted_project_is_not_run(places: Places) -> None:
    places.write("project/.pegboard/plugins/bad.py", "open(__file__ + '.ran', 'w').close()")
    places.write("user/plugins/mine.py", SHOUT.format(text="user"))

    register = await places.load(trusted=False)

    mine, bad = register.infos
    assert (bad.name, bad.blocked, mine.blocked) == ("bad", True, False)
    assert "not trusted this time" in bad.error
    assert not (places.project / ".pegboard/plugins/bad.py.ran").exists()


@pytest.mark.parametrize(
    "source",
    ["raise ValueError('x')", "import nothing_here", "def broken(:", "raise SystemExit(2)"],
)
async def test_a_plugin_that_cannot_be_imported_takes_no_other_along(
    places: Places, source: str
) -> None:
    places.install("apple", source)
    places.install("zebra", SHOUT.format(text="zebra"))
    places.write("user/plugins/bad.py", source)

    register = await places.load()

    assert told(register) == [("import", "apple"), ("import", "bad")]
    assert all("Traceback" in problem.detail for problem in register.problems)
    assert await system(register, places) == ("first", "zebra")
    assert [bool(info.error) for info in register.infos] == [True, False, True]


async def test_a_misspelt_hook_or_argument_drops_that_hook_alone(places: Places) -> None:
    source = (
        "from pegboard import hookimpl\n"
        "@hookimpl\ndef text_compelte(text): return 'x'\n"
        "@hookimpl\ndef text_complete(sesion, text): return 'x'\n"
        "@hookimpl\ndef model_resolve(name, /): return None\n"
        "@hookimpl\ndef shell_env(env): yield env\n"
        "@hookimpl\ndef register_compactors(app): return []\n"
    )
    places.write("user/plugins/typo.py", source + SHOUT.format(text="stays"))

    register = await places.load()

    has = " (it has session, part, text)"
    assert [problem.text for problem in register.problems] == [
        "there is no hook text_compelte; did you mean text_complete?",
        f"the hook text_complete has no argument sesion; did you mean session?{has}",
        "the hook model_resolve is called by keyword, so name cannot be positional-only",
        "the hook shell_env yields: it has to return its answer",
        "the hook register_compactors has no argument app (it has none)",
    ]
    assert {problem.kind for problem in register.problems} == {"hook", "signature"}
    assert register.infos[0].hooks == ("chat_system_transform",)
    assert await system(register, places) == ("first", "stays")


async def test_a_wrapper_of_pluggy_is_refused(places: Places) -> None:
    source = (
        "import pluggy\n"
        "@pluggy.HookimplMarker('pegboard')(wrapper=True)\n"
        "def text_complete(text):\n    return (yield)\n"
    )
    places.write("user/plugins/wraps.py", source)

    register = await places.load()

    assert "is a wrapper of pluggy's" in register.problems[0].text


class Equal:  # noqa: PLW1641 - what it is about
    """A plugin that equals every other of its class, and cannot be hashed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    @property
    def costly(self) -> object:
        raise AssertionError("a property was run")

    @hookimpl
    def chat_system_transform(self, system: tuple[str, ...]) -> tuple[str, ...]:
        return (*system, self.text)


async def test_plugins_that_are_equal_are_told_apart(places: Places) -> None:
    register = await places.load(extra=(Equal("a"), Equal("b")))

    assert await system(register, places) == ("first", "a", "b")
    assert register.problems == ()


async def test_the_very_same_object_is_loaded_once(places: Places) -> None:
    plugin = Equal("a")

    register = await places.load(extra=(plugin, plugin))

    assert await system(register, places) == ("first", "a")
    assert told(register) == [("clash", "Equal")]


async def test_the_time_limit_is_the_user_s_then_the_author_s(places: Places) -> None:
    source = (
        "import time\nfrom pegboard import hookimpl\n"
        "@hookimpl(timeout_s={limit})\ndef chat_system_transform(system): time.sleep(0.2)\n"
    )
    places.write("user/plugins/author.py", source.format(limit=0.01))
    places.write("user/plugins/user.py", source.format(limit=60))
    places.write("user/plugins/general.py", source.format(limit=None))
    said = {"user": PluginConfig(timeout_s=0.02)}

    register = await places.load(config=Config(hook_timeout_s=0.03, plugins=said))
    await system(register, places)

    limits = {each.plugin: each.message.rpartition("than ")[2] for each in places.failures}
    assert limits == {"author": "0.01 s", "user": "0.02 s", "general": "0.03 s"}


async def test_paths_of_the_configuration_are_files_folders_and_names(places: Places) -> None:
    one = places.write("elsewhere/one.py", SHOUT.format(text="one"))
    places.write("folder/three.py", SHOUT.format(text="three"))
    places.write("folder/two.py", SHOUT.format(text="two"))
    places.write("site/named_module.py", SHOUT.format(text="named"))
    paths = (str(one), str(places.root / "folder"), str(places.project / "named_module"))

    register = await places.load(config=Config(plugin_paths=(*paths, "/nowhere/gone.py")))

    assert await system(register, places) == ("first", "one", "three", "two", "named")
    assert [problem.plugin for problem in register.problems] == ["gone"]
    assert "cannot be read" in register.problems[0].text


async def test_a_path_that_the_project_brings_runs_as_the_project_s(places: Places) -> None:
    plugin = places.write("project/plugs/own.py", SHOUT.format(text="own"))
    toml = places.write("project/pegboard.toml", "plugin_paths = ['plugs/own.py']")
    decision = TrustStore(places.root / "trust.json").decide(
        directory=places.project,
        worktree=places.project,
        config_files=(toml,),
        plugin_paths=(plugin,),
        answer=True,
    )
    plugin.write_text(SHOUT.format(text="changed since"))

    register = await places.load(config=Config(plugin_paths=(str(plugin),)), decision=decision)

    assert [(info.name, info.origin) for info in register.infos] == [("own", "project")]
    assert await system(register, places) == ("first", "own")


@pytest.mark.parametrize(
    ("folder", "name"),
    [("", "brought"), ("", "pegboard"), ("src", "brought"), (".venv/lib/site-packages", "brought")],
)
async def test_a_distribution_that_only_stands_in_the_project_is_not_run(
    places: Places, monkeypatch: pytest.MonkeyPatch, folder: str, name: str
) -> None:
    entry = places.project / folder
    places.write(f"project/{folder}/brought_module.py", SHOUT.format(text="ran"))
    points = "[pegboard]\nbrought = brought_module\n"
    places.write(f"project/{folder}/{name}.egg-info/entry_points.txt", points)
    monkeypatch.chdir(places.project)
    monkeypatch.syspath_prepend(folder and str(entry))  # "" is where a notebook stands

    register = await places.load(builtins=name == "pegboard")

    [info] = [info for info in register.infos if info.name == "brought"]
    runs = folder.endswith("site-packages")
    assert await system(register, places) == (("first", "ran") if runs else ("first",))
    assert info.blocked != runs
    assert runs or f"not run: {entry} is a folder of the project" in info.error


async def test_a_tool_file_may_have_hooks_and_a_plugin_tools(places: Places) -> None:
    source = "from pegboard import tool\n@tool\ndef hello(name: str) -> str:\n    return name\n"
    places.write("project/.pegboard/tool/hello.py", source + SHOUT.format(text="both"))
    offering = "@hookimpl\ndef register_tools(config):\n    return [count]\n"
    counting = "@tool\ndef count() -> str:\n    return '1'\n"
    places.write(
        "user/plugins/counts.py", f"from pegboard import hookimpl, tool\n{counting}{offering}"
    )

    register = await places.load()
    tools = await register.collect_tools(Config())

    assert sorted(tools) == ["count", "hello"]
    assert register.tools == tools
    assert await system(register, places) == ("first", "both")
    assert {info.name: info.tools for info in register.infos} == {
        "counts": ("count",),
        ".pegboard/tool/hello.py": ("hello",),
    }


async def test_of_two_installed_tools_of_one_id_the_first_by_name_counts(places: Places) -> None:
    source = (
        "from pegboard import hookimpl, tool\n"
        "@tool\ndef same() -> str:\n    return {text!r}\n"
        "@hookimpl\ndef register_tools(config):\n    return [same]\n"
    )
    places.install("apple", source.format(text="apple"))
    places.install("zebra", source.format(text="zebra"))

    register = await places.load()
    tools = await register.collect_tools(Config())

    assert tools["same"]() == "apple"
    assert told(register) == [("clash", "zebra")]
    assert "the plugin apple keeps it" in register.problems[0].text


async def test_a_tool_keeps_the_id_that_its_author_gave(places: Places) -> None:
    places.write(
        "project/.pegboard/tool/hello.py",
        "from pegboard import tool\n@tool(id='greet')\ndef hi() -> str:\n    return 'x'\n",
    )

    register = await places.load()

    assert list(await register.collect_tools(Config())) == ["greet"]


async def test_a_tool_of_a_plugin_with_an_id_that_providers_refuse_is_left_out(
    places: Places,
) -> None:
    def height() -> str:
        return "x"

    height.__name__ = "höhe"
    offered = tool(height)

    class Offers:
        @hookimpl
        def register_tools(self, config: Config) -> object:
            return [offered]

    register = await places.load(extra=(Offers(),))

    assert await register.collect_tools(Config()) == {}
    assert told(register) == [("name", "Offers")]


async def test_a_plugin_says_which_of_its_hooks_are_quarantined(places: Places) -> None:
    places.write(
        "user/plugins/bad.py",
        "from pegboard import hookimpl\n@hookimpl\ndef chat_system_transform(system): return 3\n",
    )

    register = await places.load()
    for _ in range(4):
        await system(register, places)

    assert [failure.quarantined for failure in places.failures] == [False, False, True]
    assert isinstance(register.infos[0], PluginInfo)
    assert register.infos[0].quarantined == ("chat_system_transform",)


async def test_a_register_that_closes_leaves_nothing_behind(places: Places) -> None:
    places.write("user/plugins/mine.py", SHOUT.format(text="user"))
    before = set(sys.modules)

    for _ in range(20):
        register = await places.load()
        await system(register, places)
        await register.aclose()

    assert {name for name in set(sys.modules) - before if name.startswith("pegboard_file")} == set()


async def test_two_apps_load_the_same_file_apart(places: Places) -> None:
    places.write(
        "user/plugins/counts.py",
        "from pegboard import hookimpl\nSEEN = []\n@hookimpl\n"
        "def chat_system_transform(system):\n"
        "    SEEN.append(1)\n    return (*system, str(len(SEEN)))\n",
    )

    one, two = await places.load(), await places.load()

    assert await system(one, places) == await system(two, places) == ("first", "1")
