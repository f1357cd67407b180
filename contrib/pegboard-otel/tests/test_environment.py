"""The telemetry of a process: its environment, its beginning and its end."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from collector import Collector
from pegboard_otel import Telemetry

from pegboard import ToolContext, __version__, tool
from pegboard.schema.part import Completed
from support.models.played import Played, ToolsPlugin, call, calls, opened, text, tools_of


@tool
async def variables(context: ToolContext) -> str:
    """Show the environment of a process."""
    return (await context.run(["env"])).output


async def test_the_environment_s_parent_is_that_of_the_turn_and_tools_get_their_own(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    monkeypatch.setenv("TRACEPARENT", f"00-{trace}-{parent}-01")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TRACEPARENT": os.environ["TRACEPARENT"],
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=me",
    }
    provider = Played(calls(call("variables", "{}")), text("done"))

    async with opened(tmp_path, provider, ToolsPlugin(variables), Telemetry(), env=env) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")
        [part] = tools_of(await app.list_turns(session.id))

    turn, _, tool_span, _ = collector.spans
    assert (turn.trace, turn.parent) == (trace, parent)
    assert isinstance(part.state, Completed)
    assert f"TRACEPARENT=00-{trace}-{tool_span.id}-01" in part.state.output
    assert "OTEL_" not in part.state.output


def test_nothing_is_imported_or_sent_without_a_collector(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from pegboard_otel import Telemetry
from support.models.played import Played, opened, text

async def main():
    async with opened(Path(sys.argv[1]), Played(text("done")), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")
        print([each.message for each in app.failures])

asyncio.run(main())
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = run_python(code, tmp_path)

    assert done.stdout.splitlines() == ["[]", "[]"], done.stderr


@pytest.mark.parametrize("state", ["absent", "hanging"])
async def test_a_collector_that_does_not_answer_holds_up_no_turn_and_no_end(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    if state == "absent":
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    collector.hanging.set()
    telemetry = Telemetry()
    context = opened(tmp_path, Played(text("done"), text("done")), telemetry)
    app = await context.__aenter__()
    session = await app.create_session()
    await app.prompt(session.id, "go")
    await app.prompt(session.id, "go")

    started = time.monotonic()
    await context.__aexit__(None, None, None)
    took_s = time.monotonic() - started

    assert took_s < 9, "1 s for the flush, and time for a busy machine"


async def test_two_apps_share_the_export_and_the_last_one_sends_the_rest(
    tmp_path: Path, collector: Collector
) -> None:
    telemetry = Telemetry()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()

    async with opened(tmp_path / "one", Played(text("done")), telemetry) as first:
        async with opened(tmp_path / "two", Played(text("done")), telemetry) as second:
            for app in (first, second):
                session = await app.create_session()
                await app.prompt(session.id, "go")
        assert collector.bodies == [], "it is sent in batches"

    assert [each.name for each in collector.spans].count("invoke_agent build") == 2


def test_a_run_of_the_command_line_sends_its_spans(tmp_path: Path, collector: Collector) -> None:
    record = tmp_path / "installed" / f"pegboard_otel-{__version__}.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: pegboard-otel\nVersion: {__version__}\n"
    )
    (record / "entry_points.txt").write_text("[pegboard]\notel = pegboard_otel:telemetry\n")
    project = tmp_path / "project"
    project.mkdir()
    script = {"scripts": [{"steps": [{"text": "Hi."}]}]}
    (project / "answer.json").write_text(json.dumps(script))
    places = {f"PEGBOARD_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA")}
    places |= {f"PEGBOARD_{name}_DIR": str(tmp_path / name) for name in ("STATE", "CACHE")}
    path = os.pathsep.join([str(record.parent), str(Path(__file__).parents[1])])
    program = "from pegboard.cli.main import main; main()"
    command = [sys.executable, "-c", program, "run", "--model", "scripted/answer.json", "Hello"]

    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, **places, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "Hi.\n"), done.stderr
    assert {"invoke_agent build", "chat answer.json"} <= {each.name for each in collector.spans}


EMBEDDING = """
import asyncio, sys
from pathlib import Path
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pegboard_otel import Telemetry
from support.models.played import Played, opened, text

memory = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(memory))
trace.set_tracer_provider(provider)

async def main():
    async with opened(Path(sys.argv[1]), Played(text("done")), Telemetry()) as app:
        session = await app.create_session()
        with trace.get_tracer("mine").start_as_current_span("mine"):
            await app.prompt(session.id, "go")

asyncio.run(main())
ids = {span.context.span_id: span.name for span in memory.get_finished_spans()}
for span in memory.get_finished_spans():
    print(span.name, "<", ids[span.parent.span_id] if span.parent else "")
"""


def test_a_program_with_telemetry_of_its_own_gets_the_spans(tmp_path: Path) -> None:
    done = run_python(EMBEDDING, tmp_path)

    assert done.stdout.splitlines() == [
        "chat m < invoke_agent build",
        "invoke_agent build < mine",
        "mine < ",
    ], done.stderr


def run_python(code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a program that finds the plugin and the tests' modules, and no collector."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    here = Path(__file__).parents[1]
    env["PYTHONPATH"] = os.pathsep.join([str(here), str(here.parents[1] / "tests")])
    return subprocess.run(
        [sys.executable, "-c", code, folder], env=env, capture_output=True, text=True, check=False
    )
