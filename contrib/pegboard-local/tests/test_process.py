"""The process of a model, with a library that does what it is told in the place of llama.cpp."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import msgspec
import pegboard_local
import pytest
from pegboard_local import LocalOptions
from pegboard_local.process import ModelProcess
from pegboard_local.provider import Local

from pegboard import App, AppOptions, Prompt
from pegboard.errors import ContextOverflowError, ProviderError
from pegboard.providers import ModelMessage, ModelRequest, StreamEvent, StreamFinish, Text, Usage
from pegboard.schema.message import AssistantMessage
from pegboard.testing import check_provider
from support.processes.processes import alive, remaining

Written = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("library")
LEAVING_S = 20


def model_file(gguf: Written, name: str = "model.gguf") -> Path:
    return gguf(name, general__architecture="llama", llama__context_length=2048)


@pytest.fixture
def path(gguf: Written) -> Path:
    return model_file(gguf)


def request(local: Local, path: Path, word: str = "Hello.") -> ModelRequest:
    model = local.resolve(str(path))
    assert model is not None
    said = ModelMessage(role="user", content=(Text(text=word),))
    return ModelRequest(model=model, system=("Be good.",), messages=(said,), idle_timeout_s=30)


async def answer(local: Local, path: Path, word: str = "Hello.") -> list[StreamEvent]:
    return [event async for event in local.stream(request(local, path, word))]


def child_of(local: Local) -> int:
    found = [each.pid for each in local._processes.values()]
    assert len(found) == 1
    assert found[0] is not None
    return found[0]


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


async def test_the_suite_for_providers_passes(path: Path) -> None:
    local = Local(LocalOptions(models={"mine": str(path)}))

    assert await check_provider(local, models=[str(path)]) == ()
    await local.aclose()


async def test_tokens_are_those_that_the_model_counted(path: Path) -> None:
    local = Local(LocalOptions())

    events = await answer(local, path)

    assert events[-1] == StreamFinish("stop", Usage(input=5, output=2, cache_read=4))
    await local.aclose()


def test_what_is_known_of_a_model_is_what_its_file_says(gguf: Written) -> None:
    path = gguf(general__architecture="llama", general__name="Mine", llama__context_length=100_000)
    unknown = gguf("other.gguf", general__architecture="llama")
    local, small = Local(LocalOptions()), Local(LocalOptions(context=4_096))

    model, same = local.resolve(str(path)), small.resolve(str(path))
    other = local.resolve(str(unknown))

    assert model
    assert same
    assert other
    assert (model.name, model.limit.context, model.limit.output) == ("Mine", 16_384, 1_024)
    assert same.limit.context == 4_096
    assert (other.limit.context, other.limit.output) == (None, None)
    assert model.cost is not None
    assert (model.cost.input, model.cost.output) == (0, 0)
    assert model.capabilities.toolcall
    assert not model.capabilities.reasoning


async def test_one_process_answers_all_requests_and_ends_with_the_provider(path: Path) -> None:
    local = Local(LocalOptions())

    await answer(local, path)
    first = child_of(local)
    await asyncio.gather(*[answer(local, path) for _ in range(3)])

    assert child_of(local) == first
    await local.aclose()
    assert not is_alive(first)


async def test_an_answer_that_nobody_wants_ends_and_the_next_comes_from_the_same_process(
    path: Path,
) -> None:
    local = Local(LocalOptions())
    async with aclosing(local.stream(request(local, path, "forever"))) as stream:
        await anext(stream)
        first = child_of(local)

    events = await answer(local, path)

    assert isinstance(events[-1], StreamFinish)
    assert child_of(local) == first
    await local.aclose()


async def test_a_cancelled_answer_ends_too(path: Path) -> None:
    local = Local(LocalOptions())
    task = asyncio.create_task(answer(local, path, "forever"))
    while not any(each.pid for each in local._processes.values()):  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.01)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert isinstance((await answer(local, path))[-1], StreamFinish)
    await local.aclose()


@pytest.mark.parametrize(
    ("word", "error", "text"),
    [
        ("crash", ProviderError, "ended with 9"),
        ("raise", ProviderError, "no such grammar"),
        ("long", ContextOverflowError, "longer than 2048"),
    ],
)
async def test_a_failure_names_its_cause_and_the_next_request_works(
    path: Path, word: str, error: type[Exception], text: str
) -> None:
    local = Local(LocalOptions())

    with pytest.raises(error, match=text):
        await answer(local, path, word)

    assert isinstance((await answer(local, path))[-1], StreamFinish)
    await local.aclose()


async def test_a_process_that_is_silent_is_ended(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard_local.process.STOP_LIMIT_S", 0.1)
    monkeypatch.setattr("pegboard_local.process.END_LIMIT_S", 0.1)
    local = Local(LocalOptions())
    await answer(local, path)
    first = child_of(local)
    silent = msgspec.structs.replace(request(local, path, "silence"), idle_timeout_s=0.2)

    with pytest.raises(ProviderError, match=r"silent for 0\.2 s"):
        _ = [event async for event in local.stream(silent)]

    assert not is_alive(first)
    assert isinstance((await answer(local, path))[-1], StreamFinish)
    await local.aclose()


async def test_weights_that_cannot_be_loaded_are_named(gguf: Written, tmp_path: Path) -> None:
    damaged, gone = model_file(gguf, "damaged.gguf"), tmp_path / "gone.gguf"
    (tmp_path / "notes.gguf").write_text("Notes.")
    local = Local(LocalOptions())

    with pytest.raises(ProviderError, match=r"damaged\.gguf cannot be loaded: Failed to init"):
        await answer(local, damaged)
    with pytest.raises(ProviderError, match=r"No such file.*gone\.gguf"):
        await answer(local, gone)
    with pytest.raises(ProviderError, match="this is no GGUF file"):
        await answer(local, tmp_path / "notes.gguf")
    await local.aclose()


async def test_the_process_gets_no_key_of_the_environment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
    local = Local(LocalOptions())
    await answer(local, path)

    environment = environment_of(child_of(local))

    assert b"PATH=" in environment
    assert b"sk-secret-key" not in environment
    await local.aclose()


async def test_the_process_ends_with_the_app(path: Path, tmp_path: Path) -> None:
    app = await App.open(
        tmp_path,
        AppOptions(
            plugins=(pegboard_local,),
            installed=False,
            config_dir=tmp_path / "config",
            data_dir=tmp_path / "data",
            state_dir=tmp_path / "state",
            cache_dir=tmp_path / "cache",
        ),
    )
    async with app:
        session = await app.create_session()
        before = alive(str(path))
        turn = await app.prompt(session.id, Prompt("Hello.", model=f"local/{path}"))
        during = alive(str(path))

    assert isinstance(turn.info, AssistantMessage)
    assert turn.info.error is None
    assert (before, len(during), remaining(str(path))) == ([], 1, [])


PARENT = """
import asyncio, sys
from pathlib import Path
from pegboard_local.process import ModelProcess

async def main():
    process = ModelProcess(Path(sys.argv[1]), context=64, threads=1)
    said = {"messages": [{"role": "user", "content": sys.argv[2]}]}
    async for chunk in process.ask(said, idle_timeout_s=60):
        print(process.pid, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_the_process_ends_when_its_parent_is_killed_in_the_middle_of_an_answer(
    path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = (
        os.environ["PYTHONPATH"],
        str(Path(ModelProcess.__init__.__code__.co_filename).parents[1]),
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(path), "forever"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    assert is_alive(child)

    parent.send_signal(number)
    await parent.communicate()

    async with asyncio.timeout(LEAVING_S):
        while is_alive(child):  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.02)
