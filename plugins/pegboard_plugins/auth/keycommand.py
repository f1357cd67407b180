"""Keys that a program of the user prints, such as the command of a password store."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pegboard.errors import ProviderAuthError
from pegboard.plugins import run_in_thread
from pegboard.processes import find_program

COMMAND_TIMEOUT_S = 5.0
"""Long enough for a store that is unlocked; one that waits for a user is not waited for."""
_LIMIT_BYTES = 64 << 10


async def printed_key(
    provider_id: str, argv: Sequence[str], env: Mapping[str, str], *, home: Path, root: Path
) -> str:
    """Run a command in `home`, without a shell or input; return the first line of its output.

    A program in the project `root` is never used. The output is not logged.

    :raises ProviderAuthError: when it fails, prints nothing, or takes more than five seconds.
    """
    program = argv[0] if "/" in argv[0] else find_program(argv[0], env, root=root)
    if program is None:
        raise _failed(provider_id, argv, "there is no such program")
    try:
        code, output = await _ran([program, *argv[1:]], env, home)
    except TimeoutError as error:
        reason = f"it took more than {COMMAND_TIMEOUT_S:g} s"
        raise _failed(provider_id, argv, reason) from error
    except (OSError, ValueError) as error:
        raise _failed(provider_id, argv, f"cannot run {program!r} in {home}: {error}") from error
    if code:
        raise _failed(provider_id, argv, f"it ended with exit code {code}")
    lines = output.decode("utf-8", "replace").split()
    if not lines:
        raise _failed(provider_id, argv, "it printed nothing")
    return lines[0]


async def _ran(argv: Sequence[str], env: Mapping[str, str], home: Path) -> tuple[int, bytes]:
    """Run a program; return its exit code, and as much output as fits into a pipe.

    The program's process group is killed at the end. A program with more output blocks.

    :raises TimeoutError: when the program does not end in `COMMAND_TIMEOUT_S` seconds.
    """
    program = _started(argv, env, home)
    assert program.stdout is not None
    try:
        async with asyncio.timeout(COMMAND_TIMEOUT_S):
            code = await run_in_thread(program.wait, name="pegboard-key")
        os.set_blocking(program.stdout.fileno(), False)
        return code, program.stdout.read(_LIMIT_BYTES) or b""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.stdout.close()


def _started(argv: Sequence[str], env: Mapping[str, str], home: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        argv,
        cwd=home,
        env=env,
        stdin=quiet,
        stdout=subprocess.PIPE,
        stderr=quiet,
        start_new_session=True,
    )


def _failed(provider_id: str, argv: Sequence[str], reason: str) -> ProviderAuthError:
    text = f"the key command of {provider_id} ({argv[0]}) gives no key: {reason}"
    return ProviderAuthError(text, provider_id=provider_id)
