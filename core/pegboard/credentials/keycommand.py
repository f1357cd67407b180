"""Keys that a program of the user's prints, such as that of a password store."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pegboard.errors import ProviderAuthError, ToolError
from pegboard.kit.programs import find_program
from pegboard.processes.process import run_program

COMMAND_TIMEOUT_S = 5.0
"""Long enough for a store that is unlocked; one that waits for a person is not waited for."""
_LIMIT_BYTES = 64 << 10


async def printed_key(
    provider_id: str, argv: Sequence[str], env: Mapping[str, str], *, home: Path, root: Path
) -> str:
    """The first line that the command prints; it runs in `home`, without a shell or input.

    No program of the project `root` stands in for it. What it prints is told nowhere.

    :raises ProviderAuthError: when it fails, prints nothing, or takes more than five seconds.
    """
    program = argv[0] if "/" in argv[0] else find_program(argv[0], env, root=root)
    if program is None:
        raise _failed(provider_id, argv, "there is no such program")
    try:
        done = await run_program(
            [program, *argv[1:]],
            cwd=home,
            env=env,
            timeout_s=COMMAND_TIMEOUT_S,
            limit_bytes=_LIMIT_BYTES,
        )
    except ToolError as error:
        raise _failed(provider_id, argv, str(error)) from error
    if done.timed_out:
        raise _failed(provider_id, argv, f"it took more than {COMMAND_TIMEOUT_S:g} s")
    if done.exit_code:
        raise _failed(provider_id, argv, f"it ended with exit code {done.exit_code}")
    lines = done.output.decode("utf-8", "replace").split()
    if not lines:
        raise _failed(provider_id, argv, "it printed nothing")
    return lines[0]


def _failed(provider_id: str, argv: Sequence[str], reason: str) -> ProviderAuthError:
    text = f"the key command of {provider_id} ({argv[0]}) gives no key: {reason}"
    return ProviderAuthError(text, provider_id=provider_id)
