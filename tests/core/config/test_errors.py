import os
from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from support.plugins.config_place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def test_a_missing_referenced_file_is_an_error_with_its_place(place: Place) -> None:
    file = place.write(place.user / "pegboard.toml", '\n[agent.build]\nprompt = "{file:no.txt}"\n')

    with pytest.raises(ConfigError) as raised:
        await place.load()

    error = raised.value
    assert (error.file, error.line, error.key) == (file, 3, "agent.build.prompt")
    assert "no.txt" in str(error)


@pytest.mark.parametrize(
    ("name", "text", "where", "says"),
    [
        ("pegboard.toml", 'model = "a"\nmodle = "b"\n', (2, "modle"), "did you mean model?"),
        (
            "pegboard.toml",
            "[agent.build]\nstep = 3\n",
            (2, "agent.build.step"),
            "did you mean steps?",
        ),
        ("pegboard.toml", "\n[agent]\nbuild = 3\n", (3, "agent.build"), "must be a table"),
        ("pegboard.toml", "[provider.x]\nbaseurl = 1\n", (2, "provider.x.baseurl"), "unknown key"),
        ("pegboard.toml", "project_permission = []\n", (1, "project_permission"), "unknown key"),
        ("pegboard.toml", "[limits]\nproceses = 1\n", (2, "limits.proceses"), "mean processes?"),
        ("pegboard.toml", '[models]\nsmal = "a/b"\n', (2, "models.smal"), "mean small?"),
        ("pegboard.toml", "[budget.run]\nstep = 1\n", (2, "budget.run.step"), "mean steps?"),
        ("pegboard.toml", "model = \n", (1, ""), "not valid TOML"),
        (
            "pegboard.toml",
            '[permission.bash]\n"*" = "ask"\n"rm *" = "no"\n',
            (3, "permission.bash.rm *"),
            'must be "allow", "ask" or "deny", not "no"',
        ),
        (
            "opencode.jsonc",
            '{\n  // hot\n  "agent": {"build": {\n    "temperature": "x"}}}',
            (4, "agent.build.temperature"),
            "expected float | null, got str",
        ),
        ("opencode.json", '{\n  "model": "a",\n  "x": tru\n}', (3, ""), "not valid JSON"),
        ("opencode.json", "[1]", (None, ""), "must be an object"),
        ("opencode.json", '{"command": {"x": {}}}', (1, "command.x"), "required field template"),
        ("opencode.json", '{"snapshot": 3}', (1, "snapshot"), "expected bool"),
        ("opencode.json", '{"sandbox": "\\ud800"}', (None, ""), "half of a letter"),
        ("agent/x.md", '---\nmode: "\\ud800"\n---\nText', (None, ""), "half of a letter"),
        ("agent/x.md", f"---\nmode: {'[' * 60}{']' * 60}\n---\n", (None, ""), "too deep"),
        ("pegboard.toml", "sandbox_network = [true]", (1, "sandbox_network"), "True is no text"),
        ("pegboard.toml", 'instructions = ["a**"]', (1, "instructions"), "stand alone"),
        ("agent/x.md", "---\ndescription: d\nsteps: many\n---\nText", (3, "agent.x.steps"), "int"),
        ("agent/x.md", "---\nmode: [a\n---\nText", (3, ""), "not valid YAML"),
        ("agent/x.md", "---\nmode: 2024-13-45\n---\nText", (None, ""), "not valid YAML"),
        ("agent/x.md", "---\nmode: !!bool maybe\n---\nText", (None, ""), "not valid YAML"),
    ],
)
async def test_a_mistake_names_file_line_and_key(
    place: Place, name: str, text: str, where: tuple[int | None, str], says: str
) -> None:
    file = place.write(place.user / name, text)

    with pytest.raises(ConfigError) as raised:
        await place.load()

    error = raised.value
    assert (error.file, (error.line, error.key)) == (file, where)
    assert says in str(error)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pegboard.toml", "a = " + "[" * 5000),
        ("opencode.json", '{"a": ' + "[" * 100_000),
        ("opencode.json", "{'a': " + "[" * 5000),
        ("opencode.json", '{"a": ' + "[" * 200 + "]" * 200 + "}"),
    ],
    ids=["TOML", "JSON", "JSON5", "JSON that can be read"],
)
async def test_a_project_s_file_that_is_too_deep_is_an_error(
    place: Place, name: str, text: str
) -> None:
    file = place.write(place.project / name, text)

    with pytest.raises(ConfigError, match="too deep within one another") as raised:
        await place.load()

    assert raised.value.file == file


async def test_errors_never_show_values(place: Place) -> None:
    place.write(
        place.user / "pegboard.toml", '[provider.x]\noptions = "sk-secret"\nname = "{env:KEY}"\n'
    )

    with pytest.raises(ConfigError) as raised:
        await place.load(env={"KEY": "sk-secret"})

    assert "sk-secret" not in str(raised.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_an_unreadable_file_is_an_error(place: Place) -> None:
    place.write(place.user / "pegboard.toml", "").chmod(0)

    with pytest.raises(ConfigError, match="cannot be read"):
        await place.load()


async def test_a_file_that_is_no_text_is_an_error(place: Place) -> None:
    (place.user / "pegboard.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigError, match="UTF-8"):
        await place.load()


async def test_a_named_config_file_must_exist(place: Place) -> None:
    with pytest.raises(ConfigError, match="PEGBOARD_CONFIG"):
        await place.load(env={"PEGBOARD_CONFIG": "/no/where.toml"})


async def test_a_content_variable_is_named_in_its_errors(place: Place) -> None:
    for content in ("{", "a = ", '{"modle": "x"}'):
        with pytest.raises(ConfigError, match="PEGBOARD_CONFIG_CONTENT"):
            await place.load(env={"PEGBOARD_CONFIG_CONTENT": content})


async def test_an_agent_of_which_nothing_is_said_is_no_error(place: Place) -> None:
    env = {"PEGBOARD_CONFIG_CONTENT": '{"agent": {"build": null, "plan": {"permission": "ask"}}}'}

    config = (await place.load(env=env)).config

    assert [rule.action for rule in config.agent["plan"].permission] == ["ask"]
