"""The runner's figures are what happened, and it leaves nothing behind."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from evals.__main__ import main
from evals.case import Case, Step, search_path, step
from evals.choose import choose
from evals.everyday import TASKS
from evals.play import Ended, Figures, Setting, Uses, Variant, counted, environment, flaws_of, play
from evals.suite.every import CASES
from evals.table import differences, failures, table
from evals.test_cases import UNUSED, transcript
from support.models.model_server import (
    Answer,
    Body,
    ModelServer,
    Pause,
    by_step,
    finish,
    text,
    tool_call,
    usage,
)
from support.processes.processes import remaining

TESTS = Path(__file__).parents[1]
LIMIT_S = 30
MODEL = f"model-{os.getpid()}"
"""Of this process alone, to be found among all processes."""
ALL = os.environ.get("PEGBOARD_WIRE") == "all"
PRICES = {"input": 1_000.0, "output": 2_000.0, "cache_read": 100.0}
"""Dollars for a million tokens."""
USAGE = usage(100, 7, cached=40)
PRICE = 60 * 0.001 + 40 * 0.0001 + 7 * 0.002
"""Of an answer with that usage."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_DISABLE_PLUGINS", UNUSED)


def setting(server: ModelServer, folder: Path, *, timeout_s: float = LIMIT_S) -> Setting:
    """How to play the model of this server."""
    model = {"limit": {"context": 100_000, "output": 4_000}, "cost": PRICES}
    provider = {"options": {"baseURL": server.url, "apiKey": "k"}, "models": {MODEL: model}}
    config = folder / "shared.json"
    config.write_text(json.dumps({"provider": {"fake": provider}}))
    return Setting(model=f"fake/{MODEL}", config=config, sandbox="off", timeout_s=timeout_s)


def answers(case: Case) -> list[Answer]:
    """The reference of a case as a server says it, with known usage."""
    return [
        [
            text(each["text"]),
            *(
                tool_call(one["tool"], one["input"], index=at)
                for at, one in enumerate(each["calls"])
            ),
            finish("tool_calls" if each["calls"] else "stop", usage=USAGE),
        ]
        for each in case.reference
    ]


def root_in(folder: Path) -> Path:
    """An empty folder for a run."""
    root = folder / "root"
    root.mkdir()
    return root


async def test_the_figures_of_a_run_are_exact(tmp_path: Path) -> None:
    case = CASES["denied"]
    async with ModelServer(by_step(*answers(case))) as server:
        figures = await play(case, Variant(), setting(server, tmp_path), root_in(tmp_path))

    assert len(server.requests) == 3
    assert figures.seconds > 0
    assert figures == Figures(
        case="denied",
        model=f"fake/{MODEL}",
        variant="plain",
        success=True,
        steps=3,
        tokens_in=180,
        tokens_out=21,
        tokens_cached=120,
        cost=pytest.approx(3 * PRICE),
        seconds=figures.seconds,
        exit_code=5,
        tools={"edit": Uses(calls=2, failures=1), "read": Uses(calls=2, failures=0)},
    )


async def test_a_variant_changes_the_prompt_and_a_choice_is_one_answer(tmp_path: Path) -> None:
    (task,) = [task for task in TASKS if task.name == "edit-value"]
    variant = tmp_path / "brief.md"
    variant.write_text('Say "less".\n')
    edit = [tool_call("edit", task.arguments), finish("tool_calls", usage=USAGE)]
    async with ModelServer(by_step(edit)) as server:
        chosen = setting(server, tmp_path)
        made = await choose(task, Variant.at(variant), chosen, root_in(tmp_path))

    (request,) = server.requests
    assert 'Say "less".' in request["messages"][0]["content"]
    assert "port = 8080" in json.dumps(request["messages"][-1])
    assert (made.variant, made.right, made.exit_code) == ("brief", True, 6)
    assert made.calls == (("edit", task.arguments),)
    assert (made.tokens_in, made.tokens_out, made.cost) == (60, 7, pytest.approx(PRICE))


async def test_a_run_that_outlives_its_limit_has_failed(tmp_path: Path) -> None:
    async with ModelServer(by_step([Pause()])) as server:
        chosen = setting(server, tmp_path, timeout_s=0.5)
        figures = await play(CASES["edge-case"], Variant(), chosen, root_in(tmp_path))

    assert not figures.success
    assert figures.reasons[0].startswith("the run ended as time_limit")
    assert figures.exit_code == 7


def script(folder: Path, case: Case, steps: Sequence[Step]) -> str:
    """The name of a model that gives these answers."""
    file = folder / f"{case.name}.json"
    file.write_text(transcript(case, steps))
    return f"scripted/{file}"


async def test_the_command_writes_lines_and_a_table_and_leaves_nothing(tmp_path: Path) -> None:
    model = script(tmp_path, CASES["question"], [step(text="After 60 seconds.")])
    (tmp_path / "tmp").mkdir()
    arguments = ("-m", model, "--case", "question", "--sandbox", "off")
    process = await started(tmp_path, *arguments, "--repeat", "2", "--jobs", "2")
    async with asyncio.timeout(LIMIT_S):
        out, err = (content.decode() for content in await process.communicate())

    found = [json.loads(line) for line in out.splitlines()]
    assert [(each["case"], each["success"], each["steps"]) for each in found] == [
        ("question", False, 1)
    ] * 2
    assert found[0]["reasons"] == ["the answer has no '\\\\b90\\\\b'", "the answer has no 'GRACE'"]
    assert "plain" in err
    assert "0/2" in err
    assert process.returncode == 1
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_an_interrupt_ends_all(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    asked = asyncio.Event()

    def silent(_: Body) -> Answer:
        asked.set()
        return [Pause()]

    async with ModelServer(silent) as server:
        chosen = setting(server, tmp_path)
        process = await started(
            tmp_path, "-m", chosen.model, "--config", str(chosen.config), "--case", "question"
        )
        async with asyncio.timeout(LIMIT_S):
            await asked.wait()
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(LIMIT_S):
            await process.communicate()

    assert process.returncode == 130
    assert remaining(MODEL) == []
    assert list((tmp_path / "tmp").iterdir()) == []


async def started(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    """The runner as a person starts it, with temporary files below `folder`."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "evals", *arguments),
        cwd=TESTS,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.mark.skipif(not ALL, reason="two minutes; PEGBOARD_WIRE=all asks for it")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_each_reference_succeeds_through_the_command_line(case: Case, tmp_path: Path) -> None:
    chosen = Setting(model=script(tmp_path, case, case.reference), timeout_s=LIMIT_S)

    figures = await play(case, Variant(), chosen, root_in(tmp_path))

    assert figures.reasons == ()
    assert figures.steps == len(case.reference)
    assert sum(use.calls for use in figures.tools.values()) == sum(
        len(each["calls"]) for each in case.reference
    )


@pytest.mark.skipif(not ALL, reason="two minutes; PEGBOARD_WIRE=all asks for it")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_an_idle_model_fails_through_the_command_line(case: Case, tmp_path: Path) -> None:
    model = script(tmp_path, case, [step(text="I am done.")])
    chosen = Setting(model=model, timeout_s=LIMIT_S)

    figures = await play(case, Variant(), chosen, root_in(tmp_path))

    assert not figures.success
    assert (figures.steps, figures.exit_code, figures.tools) == (1, 0, {})


def test_without_a_result_the_steps_are_added_up() -> None:
    tokens = {"input": 3, "output": 2, "cache": {"read": 1, "write": 0}}
    finished = {"type": "step_finish", "part": {"tokens": tokens, "cost": 0.5}}
    state = {"status": "completed", "input": {"tool": "edit", "error": "no such tool"}}
    invalid = {"type": "tool_use", "part": {"tool": "invalid", "state": state}}

    assert counted([finished, invalid, finished]) == {
        "steps": 2,
        "tokens_in": 6,
        "tokens_out": 4,
        "tokens_cached": 2,
        "cost": 1.0,
        "tools": {"edit": Uses(calls=1, failures=1)},
    }


def test_settings_of_the_person_stay_away_and_keys_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "made up")
    for name in ("PEGBOARD_CONFIG", "XDG_CONFIG_HOME", "GIT_DIR", "OPENCODE_CONFIG"):
        monkeypatch.setenv(name, "/foreign")

    env = environment(tmp_path, {}, None)

    assert env["OPENAI_API_KEY"] == "made up"
    assert env["PATH"] == search_path()
    assert "/foreign" not in env.values()
    assert {env["HOME"], env["TMPDIR"]} == {str(tmp_path / "home"), str(tmp_path / "tmp")}


def test_a_variant_is_a_text_a_configuration_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text('"Quoted"\n')
    (tmp_path / "b.toml").write_text("snapshot = false\n")
    (tmp_path / "c" / "plugins").mkdir(parents=True)
    (tmp_path / "c" / "plugins" / "mine.py").write_text("")

    for name in ("a.md", "b.toml", "c"):
        Variant.at(tmp_path / name).install(tmp_path / f"to-{name}")
    Variant().install(tmp_path / "to-plain")

    appended = '[agent.build]\nprompt_append = "\\"Quoted\\"\\n"\n'
    assert (tmp_path / "to-a.md" / "pegboard.toml").read_text() == appended
    assert (tmp_path / "to-b.toml" / "pegboard.toml").read_text() == "snapshot = false\n"
    assert (tmp_path / "to-c" / "plugins" / "mine.py").is_file()
    assert list((tmp_path / "to-plain").iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("--case", "none"), ("--jobs", "0"), ("--variant", "no/file"), ()]
)
def test_a_wrong_argument_is_refused_before_anything_runs(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        main([*(("-m", "a/b") if arguments else ()), *arguments])


def test_the_table_compares_variants() -> None:
    facts = {"case": "edge-case", "model": "p/m", "tokens_out": 5, "tokens_cached": 0}
    uses = {"edit": Uses(calls=3, failures=1)}
    runs = [
        Figures(variant="b", success=True, steps=4, tokens_in=10, cost=0.5, tools=uses, **facts),
        Figures(variant="b", success=True, steps=8, tokens_in=30, cost=0.25, **facts),
        Figures(variant="a", success=False, reasons=("x", "y"), steps=1, tokens_in=7, **facts),
    ]

    assert table(runs).splitlines() == [
        "model  variant  success  steps  in  out  cached  cost $  seconds  failed calls",
        "p/m    a        0/1      1      7   5    0       0.0000  0.0      0/0",
        "p/m    b        2/2      6      20  5    0       0.7500  0.0      1/3",
    ]
    assert failures(runs) == "a: edge-case: x; y\n"
    assert differences(runs) == "edge-case: p/m a 0/1, p/m b 2/2\n"
    assert differences(runs[:2]) == ""


def test_a_run_that_had_to_be_killed_says_so() -> None:
    killed = Ended(code=None, out="", err="it did not end by itself")

    assert flaws_of(killed, []) == ["the run has no result: it did not end by itself"]
