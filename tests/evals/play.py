"""Plays a model over a case through the command line, in folders of its own."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from evals.case import Call, Case, judge, plant, search_path

COMMAND = Path(sys.executable).with_name("pegboard")
GRACE_S = 20
"""How much longer than its limit a run may take to end by itself."""
GOOD_ENDS = ("done", "denied")
"""Outcomes after which the tree decides: a denial may be what a case is about."""
FOREIGN = ("PEGBOARD_", "OPENCODE_", "XDG_", "GIT_")
"""Beginnings of variables that would bring in settings of the person who runs this."""
KEPT = frozenset({"PEGBOARD_DISABLE_PLUGINS"})
Level = Literal["off", "workspace", "strict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A prompt or a configuration to be compared: a file `NAME.toml` is the user's
    configuration, a text stands behind the prompt of `build`, a folder is the whole
    configuration folder, plugins included. Without a place it is Pegboard as it is.
    """

    name: str = "plain"
    place: Path | None = None

    @classmethod
    def at(cls, place: Path) -> "Variant":
        """The variant that a file or a folder holds.

        :raises FileNotFoundError: when nothing is there.
        """
        if not place.exists():
            raise FileNotFoundError(f"{place}: there is no such variant")
        return cls(name=place.stem, place=place)

    def install(self, config: Path) -> None:
        """Make it the user's configuration in this folder."""
        match self.place:
            case None:
                config.mkdir()
            case place if place.is_dir():
                shutil.copytree(place, config)
            case place:
                config.mkdir()
                content = place.read_text()
                if place.suffix != ".toml":
                    content = f"[agent.build]\nprompt_append = {json.dumps(content)}\n"
                (config / "pegboard.toml").write_text(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How cases are played: `timeout_s` bounds each; `config` is a file of the configuration
    with what all variants share, such as a provider.
    """

    model: str
    timeout_s: float = 600
    sandbox: Level = "workspace"
    config: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """How often a tool was called, and how often that failed."""

    calls: int
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of a run. Tokens and dollars count subagents in, `steps` and `tools` do not;
    `tokens_in` are without those from the cache.
    """

    case: str
    model: str
    variant: str
    success: bool
    reasons: tuple[str, ...] = ()
    steps: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float = 0
    seconds: float = 0
    exit_code: int | None = None
    tools: Mapping[str, Uses] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended; without a code it was ended from here."""

    code: int | None
    out: str
    err: str


async def play(case: Case, variant: Variant, setting: Setting, root: Path) -> Figures:
    """Run the case once; everything is kept below the empty folder `root`."""
    project = root / "project"
    before = await asyncio.to_thread(plant, case, project)
    variant.install(root / "config")
    started = monotonic()
    ended = await run(
        ("--sandbox", setting.sandbox, "--", case.task),
        folder=project / case.folder,
        env=environment(root, case.config, setting.config),
        setting=setting,
    )
    seconds = monotonic() - started
    records = records_of(ended)
    answer, calls = _answer(records), calls_of(records)
    reasons = await asyncio.to_thread(judge, case, before, project, answer, calls)
    reasons = [*flaws_of(ended, records), *reasons]
    return Figures(
        case=case.name,
        model=setting.model,
        variant=variant.name,
        success=not reasons,
        reasons=tuple(reasons),
        seconds=round(seconds, 2),
        exit_code=ended.code,
        **counted(records),
    )


def environment(root: Path, config: Mapping[str, Any], shared: Path | None) -> dict[str, str]:
    """The user's variables, keys included, with all folders below `root`."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    kept = {name: os.environ[name] for name in KEPT & os.environ.keys()}
    folders = {
        f"PEGBOARD_{name.upper()}_DIR": str(root / name)
        for name in ("config", "data", "state", "cache")
    }
    for name in ("home", "tmp"):
        (root / name).mkdir()
    places = {
        "PATH": search_path(),
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
    }
    given = {"PEGBOARD_CONFIG": str(shared.absolute())} if shared else {}
    content = {"PEGBOARD_CONFIG_CONTENT": json.dumps(config)} if config else {}
    return {**own, **kept, **folders, **places, **given, **content}


async def run(
    arguments: Sequence[str], *, folder: Path, env: Mapping[str, str], setting: Setting
) -> Ended:
    """One `pegboard run`; it is ended when it outlives its limit, or when we are cancelled."""
    limit = ("--time-limit", str(setting.timeout_s))
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        *("run", "--format", "json", "-m", setting.model, *limit, *arguments),
        cwd=folder,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # so that Ctrl-C comes to us, and all of it can be ended
    )
    output = asyncio.create_task(process.communicate())
    try:
        async with asyncio.timeout(setting.timeout_s + GRACE_S):
            await asyncio.shield(output)
    except TimeoutError:
        await _end(process, output)
        return Ended(code=None, out=(await output)[0].decode(), err="it did not end by itself")
    except asyncio.CancelledError:
        await _end(process, output)
        raise
    out, err = await output
    return Ended(code=process.returncode, out=out.decode(), err=err.decode(errors="replace"))


async def _end(process: asyncio.subprocess.Process, output: asyncio.Task[Any]) -> None:
    """Ask it to end, so that it ends what it has started; then kill what is left."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, ending)
        except ProcessLookupError:
            break
        done, _ = await asyncio.wait({output}, timeout=GRACE_S / 2)
        if done:
            break


def counted(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Steps, tokens, cost and tools of a run; without a last record, what its steps say."""
    records = tuple(records)
    finished = [each["part"] for each in records if each["type"] == "step_finish"]
    last = [each for each in records if each["type"] == "result"]
    bills = last or finished
    return {
        "steps": len(finished),
        "tokens_in": sum(each["tokens"]["input"] for each in bills),
        "tokens_out": sum(each["tokens"]["output"] for each in bills),
        "tokens_cached": sum(each["tokens"]["cache"]["read"] for each in bills),
        "cost": sum(each["cost"] for each in bills),
        "tools": _uses(records),
    }


def _uses(records: Iterable[Mapping[str, Any]]) -> dict[str, Uses]:
    """The tools by name; a call that could not be used counts for the tool that was meant."""
    calls, failures = Counter[str](), Counter[str]()
    for part in _parts(records):
        name, state = part["tool"], part["state"]
        if name == "invalid":
            name = state["input"].get("tool") or name
        failed = part["tool"] == "invalid" or state["status"] == "error"
        calls[name] += 1
        failures[name] += failed
    return {name: Uses(calls=calls[name], failures=failures[name]) for name in sorted(calls)}


def calls_of(records: Iterable[Mapping[str, Any]]) -> tuple[Call, ...]:
    """The calls that were made, in the order in which they ended."""
    return tuple((part["tool"], part["state"]["input"]) for part in _parts(records))


def records_of(ended: Ended) -> list[dict[str, Any]]:
    """The records that the run wrote; a last one may have been cut off."""
    whole = [line for line in ended.out.splitlines(keepends=True) if line.endswith("\n")]
    return [json.loads(line) for line in whole]


def _parts(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each["part"] for each in records if each["type"] == "tool_use"]


def _answer(records: Iterable[Mapping[str, Any]]) -> str:
    """The last answer; empty when the run did not come so far."""
    return next((each["text"] for each in records if each["type"] == "result"), "")


def flaws_of(ended: Ended, records: Iterable[Mapping[str, Any]]) -> list[str]:
    """What went wrong with the run itself."""
    result = next((each for each in records if each["type"] == "result"), None)
    if result is None:
        said = ended.err.strip().splitlines()
        return [f"the run has no result: {said[-1] if said else 'no word'}"]
    if result["outcome"] in GOOD_ENDS:
        return []
    error = result.get("error", {}).get("data", {}).get("message", "")
    return [f"the run ended as {result['outcome']}: {error}".rstrip(": ")]
