"""What a sandboxed process tries and must not get: as root and as an unprivileged user."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard.schema.config import Config
from support.processes.enclosed import (
    BOXES,
    SECRET,
    USERS,
    Surroundings,
    Told,
    attempt,
    killed_agent,
    site,
)
from support.processes.processes import remaining

WORKSPACE = Config(sandbox="workspace")
STRICT = Config(sandbox="strict")
CONNECT = """perl -MSocket -e '
    socket(S, PF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un($ENV{AT})) && print "IN"'"""
NUMBER = {"x86_64": 248, "aarch64": 217}.get(os.uname().machine, 0)
KEYRING = (
    f"""($t, $d, $v, $b) = ("user", "pegboard-test", "IN", " " x 9);"""
    f"""$k = syscall({NUMBER}, $t, $d, $v, 2, -3);"""
    f"""syscall({NUMBER + 2}, 11, $k, $b, 9) == 2 && print substr($b, 0, 2)"""
)
"""Puts a key into the session's keyring, and reads it (add_key(2), keyctl(2))."""
ATTEMPTS = {
    "write outside": "echo x > $OUT/file; echo x > $OUT/new; mkdir $OUT/folder; rm -f $OUT/file",
    "write in the home": "echo x >> ~/.bashrc; mkdir -p ~/.config/pegboard; echo x > ~/new",
    "write through a link": "echo x > link/file; ln -s $OUT here; echo x > here/file",
    "link a file in": "ln $OUT/file hard && echo x > hard; cp -l $OUT/file sub/hard",
    "move a file": "mv $OUT/file sub/; mv -f sub/code.py $OUT/file",
    "change git's configuration": "echo '[core] fsmonitor = x' >> .git/config; rm -rf .git/config",
    "put git's folder aside": "mv .git old && mkdir .git && echo x > .git/config",
    "make a tool": "mkdir -p tool; echo x > tool/pwn.py; rm -rf tool; ln -s sub tool",
    "make a configuration": "mkdir -p .pegboard; echo {} > .pegboard/config.json; "
    "echo x > pegboard.toml; echo x > .envrc; mv sub .pegboard",
    "read a key": "cat ~/.ssh/id_ed25519; cp ~/.ssh/id_ed25519 sub/; ln ~/.ssh/id_ed25519 sub/key",
    "read what Pegboard keeps": "cat ../own/*/*; grep -r leaked ../own",
    "call a port": "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo IN",
    "call a socket outside": f"AT=$SOCKET_OUTSIDE {CONNECT}",
    "call a socket in the home": f"AT=$SOCKET_HOME {CONNECT}",
    "call a socket in the project": f"AT=$SOCKET_PROJECT {CONNECT}",
    "write to a terminal": "echo x > $TERMINAL; cat $TERMINAL & sleep 0.1; kill $!",
    "stop another process": "kill -9 $VICTIM; kill -STOP $VICTIM",
    "read another process": "cat /proc/$VICTIM/environ /proc/*/environ | tr '\\0' '\\n'",
    "see a provider's key": "env; cat /proc/self/environ",
    "use the keys of the session": f"perl -e '{KEYRING}'",
    "change the machine": "for file in /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do "
    "cat $file > $file && echo IN; done; mknod sub/disk b 254 0 && head -c 512 sub/disk && echo IN",
    "take the walls away": "mount -o remount,rw,bind / / && echo IN; umount -l ~/.ssh && echo IN; "
    "unshare -Urm sh -c 'mount -o remount,rw,bind / /; umount -l ~/.ssh; cat ~/.ssh/id_ed25519; "
    "echo x > $OUT/file'; chroot . true && echo IN; nsenter -t 1 -m true && echo IN",
}

HARMLESS = {"see a provider's key", "change the machine", "take the walls away"}
"""For a user without rights: the first is the environment's affair, with and without a sandbox."""


@pytest.fixture(scope="module", params=USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Surroundings]:
    with site(request.param) as found:
        yield found


def harm(place: Surroundings, before: dict[str, str], told: Told) -> list[str]:
    """What the attempt has got."""
    after = place.state()
    found = [path for path in before if after.get(path) != before[path]]
    found += [path for path in after if path not in before]
    found += [f"{name} was called" for name in place.called()]
    found += ["a secret"] if SECRET in told.output else []
    found += ["what it says"] if "IN" in told.output.split() else []
    return found if told.victim else [*found, "the other process"]


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A device of the machine that few programs need, left as it was."""
    try:
        os.mknod(tmp_path / "full", 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        (tmp_path / "full").open("rb").close()
    except OSError as error:
        pytest.skip(f"this machine makes no device files: {error}")
    device = Path("/dev/full")
    before = stat.S_IMODE(device.stat().st_mode)
    yield device
    device.chmod(before)


def test_root_changes_no_device_of_the_machine(place: Surroundings, full: Path) -> None:
    before = full.stat().st_mode
    line = "chmod 000 /dev/full; echo tried > /dev/null && stat -c %a /dev/full"

    told = attempt(place, "bubblewrap", line, config=WORKSPACE)
    again = attempt(place, "bubblewrap", "stat -c %a /dev/full", config=WORKSPACE)

    assert full.stat().st_mode == before
    assert told.output.split()[-1:] == ["0" if place.user == "root" else "666"]
    assert again.output.split() == ["666"]


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("name", ATTEMPTS)
def test_it_does_not_get_through(place: Surroundings, box: str, name: str) -> None:
    before = place.state()

    told = attempt(place, box, ATTEMPTS[name], config=WORKSPACE)

    assert harm(place, before, told) == []


@pytest.mark.parametrize("name", ATTEMPTS)
def test_it_does_not_get_through_at_the_strict_level(place: Surroundings, name: str) -> None:
    before = place.state()

    told = attempt(place, "bubblewrap", ATTEMPTS[name], config=STRICT)

    assert harm(place, before, told) == []


@pytest.mark.parametrize("name", [name for name in ATTEMPTS if name not in HARMLESS])
def test_without_a_sandbox_it_gets_through(name: str) -> None:
    with site(USERS[-1]) as place:
        before = place.state()

        told = attempt(place, "none", ATTEMPTS[name], config=WORKSPACE)

        assert harm(place, before, told) != []


@pytest.mark.parametrize("box", BOXES)
def test_an_agent_that_is_killed_takes_the_process_along(place: Surroundings, box: str) -> None:
    word = f"{73_000_000 + os.getpid()}"

    killed_agent(place, box, word)

    assert remaining(word) == []
