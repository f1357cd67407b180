import asyncio
import os
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from pegboard.errors import ToolError
from pegboard.kit.redact import child_env
from pegboard.processes.family import MARK
from pegboard.processes.process import run_process
from support.processes.processes import MARK as NAP
from support.processes.processes import remaining


def run(command, folder, *, timeout_s=60.0, limit_bytes=1 << 20, on_output=None, env=None):
    return run_process(
        ["bash", "-c", command],
        cwd=Path(folder),
        env=child_env(env or os.environ),
        timeout_s=timeout_s,
        limit_bytes=limit_bytes,
        on_output=on_output,
        spill_dir=Path(folder) / "spill",
    )


async def test_output_comes_in_order_with_the_exit_code(tmp_path):
    result = await run("echo out; echo err >&2; echo more; exit 3", tmp_path)

    assert (result.output, result.exit_code) == ("out\nerr\nmore\n", 3)
    assert [result.timed_out, result.truncated, result.background_ended] == [False] * 3


async def test_a_signal_is_a_negative_exit_code(tmp_path):
    assert (await run("kill -9 $$", tmp_path)).exit_code == -9


async def test_input_is_closed_and_there_is_no_terminal(tmp_path):
    result = await run("cat; read x; : </dev/tty || echo none", tmp_path)

    assert result.output.endswith("none\n")
    assert result.duration_s < 30


@pytest.mark.parametrize("argv", [["no-such-program"], ["./folder"], ["bash", "a\0b"]])
async def test_a_program_that_cannot_run_is_an_error_for_the_model(tmp_path, argv):
    (tmp_path / "folder").mkdir()

    with pytest.raises(ToolError, match="cannot run"):
        await run_process(argv, cwd=tmp_path, env={}, timeout_s=1, limit_bytes=10)


@pytest.mark.parametrize("again", [None, 0, 1, 2])
@pytest.mark.parametrize("turns", range(6))
async def test_a_call_that_is_cancelled_while_its_process_starts_leaves_nothing(
    tmp_path, turns, again
):
    line = f"trap '' TERM; (exec -a '{NAP}' sleep 1000) & exec -a '{NAP}' sleep 1000"
    call = asyncio.create_task(run(line, tmp_path))
    for _ in range(turns):
        await asyncio.sleep(0)
    time.sleep(0.05)  # noqa: ASYNC251 - the process gets ahead of the event loop

    call.cancel()
    for _ in range(again or 0):
        await asyncio.sleep(0)
    if again is not None:
        call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert remaining(NAP) == []


async def test_a_call_that_is_cancelled_again_and_again_leaves_nothing(tmp_path):
    line = f"trap '' TERM; while :; do (exec -a '{NAP}' sleep 1000) & sleep 0.001; done"
    call = asyncio.create_task(run(line, tmp_path))
    await asyncio.sleep(0.3)

    while not call.done():
        call.cancel()
        await asyncio.sleep(0.001)

    assert remaining(NAP) == []


async def test_a_directory_that_is_gone_is_an_error_and_the_next_call_works(tmp_path):
    with pytest.raises(ToolError, match="gone"):
        await run("true", tmp_path / "gone")

    assert (await run("echo hi", tmp_path)).output == "hi\n"


@contextmanager
def no_file_longer_than(size):
    """A disk that is full, as far as this process and its children can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


ESCAPES = {
    "background": "sleep {n} & sleep {n}",
    "own session": "setsid sleep {n} & sleep {n}",
    "two sessions deep": "setsid setsid bash -c 'sleep {n} & sleep {n}' & sleep {n}",
    "daemon": "(setsid sleep {n} >/dev/null 2>&1 </dev/null &); sleep {n}",
    "ignores SIGTERM": "trap '' TERM; sleep {n}; sleep {n}",
    "job control": "set -m; sleep {n} & sleep {n}",
    "spawner": "bash -c 'while :; do sleep {n} & sleep 0.01; done' & sleep {n}",
}


@pytest.mark.parametrize("kind", ESCAPES)
async def test_nothing_survives_the_time_limit(tmp_path, kind):
    number = str(70_000_000 + os.getpid())

    result = await run(f"echo started; {ESCAPES[kind].format(n=number)}", tmp_path, timeout_s=2)

    assert remaining(number) == []
    assert result.timed_out
    assert result.exit_code is None
    assert result.output.startswith("started")
    assert result.duration_s < 30


@pytest.mark.parametrize("kind", ESCAPES)
async def test_nothing_survives_a_cancelled_call(tmp_path, kind):
    number = str(71_000_000 + os.getpid())
    task = asyncio.create_task(run(ESCAPES[kind].format(n=number), tmp_path))
    await asyncio.sleep(0.15)
    started = time.monotonic()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert remaining(number) == []
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("left", ["sleep {n} &", "setsid sleep {n} >/dev/null 2>&1 &"])
async def test_what_is_left_in_the_background_is_ended_with_the_call(tmp_path, left):
    number = str(72_000_000 + os.getpid())

    result = await run(f"{left.format(n=number)} echo x", tmp_path)

    assert (result.output, result.exit_code) == ("x\n", 0)
    assert result.background_ended
    assert result.duration_s < 30
    assert remaining(number) == []


async def test_of_a_long_output_head_and_tail_are_kept_and_a_file_has_all(tmp_path):
    result = await run("seq 1 200000", tmp_path, limit_bytes=10_000)

    assert result.truncated
    assert result.output.startswith("1\n2\n")
    assert result.output.endswith("199999\n200000\n")
    assert len(result.output) < 10_200
    assert result.output_path.read_text() == "".join(f"{n}\n" for n in range(1, 200_001))
    assert result.output_path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("limit", [100, 101, 102, 103, 104, 106])
async def test_no_letter_is_cut_in_two(tmp_path, limit):
    result = await run("printf '€%.0s' $(seq 100)", tmp_path, limit_bytes=limit)

    assert set(result.output) >= {"€", "["}
    assert "\ufffd" not in result.output


async def test_a_gigabyte_needs_little_memory(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    result = await run("head -c 1073741824 /dev/zero", tmp_path)

    assert result.truncated
    assert result.output_path.stat().st_size == 64 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


async def test_bytes_that_are_no_text_become_replacement_characters(tmp_path):
    heard: list[str] = []

    result = await run(
        r"printf 'a\xff\xc3'; sleep 0.05; printf '\xa9b'", tmp_path, on_output=heard.append
    )

    assert result.output == "a\ufffdéb"
    assert "".join(heard) == result.output


async def test_a_file_of_output_that_is_removed_costs_the_file_alone(tmp_path):
    removal = "seq 1 200000; while ! rm spill/*; do sleep 0.01; done; echo gone"

    result = await run(removal, tmp_path, limit_bytes=10_000)

    assert result.output.endswith("gone\n")
    assert (result.exit_code, result.output_path) == (0, None)


async def test_a_file_that_cannot_be_finished_is_not_left_behind(tmp_path):
    with no_file_longer_than(50_000):
        result = await run("seq 1 200000", tmp_path, limit_bytes=10_000)

    assert (result.truncated, result.output_path) == (True, None)
    assert list((tmp_path / "spill").iterdir()) == []


async def test_without_a_place_for_the_whole_output_the_rest_is_lost(tmp_path):
    (tmp_path / "spill").write_text("a file where the folder should be")

    result = await run("seq 1 10000", tmp_path, limit_bytes=100)

    assert result.truncated
    assert result.output_path is None


async def test_many_processes_run_at_once(tmp_path):
    results = await asyncio.gather(*(run(f"echo {n}", tmp_path) for n in range(20)))

    assert [result.output for result in results] == [f"{n}\n" for n in range(20)]


def test_the_environment_of_children_has_no_secrets():
    env = {
        "PATH": "/bin",
        "HOME": "/home/u",
        "LANG": "C",
        "OPENAI_API_KEY": "x",
        "GITHUB_TOKEN": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_SESSION_TOKEN": "x",
        "DB_PASSWORD": "x",
        "PEGBOARD_DATA_DIR": "x",
        "my_service_secret": "x",
        "ODD_NAME": "x",
        "SSH_AUTH_SOCK": "/run/ssh",
        "TOKENIZERS": "1",
    }

    names = set(child_env(env, secrets=["odd_name"]))

    assert names & set(env) == {"PATH", "HOME", "LANG", "SSH_AUTH_SOCK", "TOKENIZERS"}


CREDENTIALS = {
    **dict.fromkeys(
        [
            "STRIPE_KEY",
            "PRIVATE_KEY",
            "ENCRYPTION_KEY",
            "AWS_ACCESS_KEY_ID",
            "DB_PASS",
            "MYSQL_PWD",
            "PGPASSWORD",
            "PASSPHRASE",
            "CREDENTIALS",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "JWT",
            "COOKIE",
            "SESSION_COOKIE",
            "token",
            "apikey",
            "ApiKey",
            "MY_APIKEY",
            "SECRETS",
            "CI_JOB_TOKEN",
            "NPM_TOKEN_FILE",
            "COMPOSER_AUTH",
            "GITHUB_PAT",
            "GITHUBTOKEN",
            "db_passwd",
            "SMTP-PASS",
            "CRED",
            "DB_CREDS",
            "x_pw",
        ],
        "x",
    ),
    "DATABASE_URL": "postgres://app:hunter22@db.example/app",
    "HTTPS_PROXY": "http://me:hunter22@proxy.example:3128",
    "REMOTE": "https://ghp_0123456789abcdefABCDEF@example.com/x.git",
    "DEPLOY": "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
    "BEARER": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "MODEL": "sk-0123456789abcdef0123",
    "SLACK": "xoxb-0123456789ab",
    "GROQ": "gsk_" + "a1" * 26,
    "XAI": "xai-" + "a1" * 40,
    "PYPI": "pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAw",
    "VAULT": "hvs.CAESIJ0123456789abcdef",
    "SENDGRID": "SG.0123456789abcdef.0123456789abcdef",
    "REPLICATE": "r8_" + "a1" * 18,
    "ONE_PASSWORD": "ops_eyJzaWduSW5BZGRyZXNz",
    "AGE": "AGE-SECRET-KEY-1" + "QPZRY9X8" * 7,
    "SLACK_HOOK": "https://hooks.slack.com/services/T000/B000/abcdef",
    "DISCORD": "https://discord.com/api/webhooks/123456/abc-def_ghi",
    "SENTRY_DSN": "https://abc123@o1.ingest.sentry.io/42",
    "REPORTS": "https://0123456789abcdef0123@o1.ingest.sentry.io/42",
    "HEADER": "Authorization: Bearer abcdef",
    "HEADERS": "accept=*/*,x-api-key=abcdef",
    "CALLBACK": "https://example.com/hook?token=abcdef",
    "DATABASE": "host=db.example password=hunter22 dbname=app",
    "CONNECTION": "Server=db;User Id=app;Password=hunter22;",
    "AZURE": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc123==",
    "AUTH_JSON": '{"user": "a", "password": "hunter22"}',
    "NETRC_LINE": "machine example.com login me password hunter22",
}
HARMLESS = {
    "PWD": "/home/me/sk-learn-tutorial-project",
    "OLDPWD": "/home/me/tokens",
    "PATH": "/opt/token:/opt/passwd=1:/srv/sk-learn-tutorial-project/bin:/bin",
    "SSH_AUTH_SOCK": "/run/ssh",
    "TOKENIZERS_PARALLELISM": "false",
    "KEYBOARD": "us",
    "KEYMAP": "de",
    "MONKEY": "1",
    "COMPASS": "north",
    "AUTHOR": "Ada",
    "XAUTHORITY": "/home/me/.Xauthority",
    "PATTERN": "*.py",
    "DATABASE_URL_PLAIN": "postgres://db.example/app",
    "HTTP_PROXY": "http://proxy.example:3128",
    "LS_COLORS": "rs=0:di=01;34",
    "GIT_REMOTE": "ssh://git@github.com/me/project.git",
    "DATABASE_DSN_HOST": "postgres://app@db.example/app",
    "PROMPT_COMMAND": "pwd=$(pwd); token=$x",
    "CFLAGS": "-O2 -DTOKEN=1 -DPASSWORD_LENGTH=12",
    "PS1": r"\u@\h:\w\$ ",
    "LESSOPEN": "| /usr/bin/lesspipe %s",
    "PYTEST_ADDOPTS": "-k 'test_token or password' -p no:cacheprovider",
    "MAKEFLAGS": "-j4 -- V=1",
    "HELP": "set token= or password: to log in",
    "PATTERN_OF": "machine readable output without a password",
    "MODULES": "gsk_helpers xai-tools SG.x ops_functions_of_module",
}


def test_what_looks_like_a_credential_by_name_or_value_is_left_out() -> None:
    names = set(child_env({**CREDENTIALS, **HARMLESS}))

    assert names & set(CREDENTIALS) == set()
    assert names & set(HARMLESS) == set(HARMLESS)


async def test_programs_do_not_wait_for_a_person(tmp_path):
    result = await run("env; git config --get core.editor || true", tmp_path)

    for setting in ("GIT_TERMINAL_PROMPT=0", "PAGER=cat", "GIT_OPTIONAL_LOCKS=0", "TERM=dumb"):
        assert setting in result.output.splitlines()
    assert MARK in result.output


ENDING = """
import asyncio, os, sys
from pathlib import Path
from pegboard.processes.process import run_process, run_program
turns, kind = int(sys.argv[1]), sys.argv[2]
facts = {"cwd": Path.cwd(), "env": dict(os.environ), "timeout_s": 60, "limit_bytes": 1000}
async def main():
    argv = ["sleep", sys.argv[3]]
    run = run_process(argv, **facts) if kind == "process" else run_program(argv, **facts)
    task = asyncio.create_task(run)
    for _ in range(turns):
        await asyncio.sleep(0)
    print("done", flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["process", "program"])
@pytest.mark.parametrize("turns", range(10))
def test_an_event_loop_ends_whose_last_task_was_starting_a_process(tmp_path, turns, kind):
    nap = f"{76_000_000 + os.getpid()}.{turns}{len(kind)}"
    command = [sys.executable, "-c", ENDING, str(turns), kind, nap]

    ended = subprocess.run(
        command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert (ended.returncode, ended.stdout) == (0, "done\n")
    assert remaining(nap) == []
