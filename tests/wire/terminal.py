"""A real terminal interface in a terminal of its own: keys go in, the screen comes out."""

import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wire.real_clients import environment

COLUMNS, ROWS = 150, 60
WITHIN_S = 60.0
LOOK_EVERY_S = 0.08
CRASHED = re.compile("A fatal error occurred|opencode crashed")


class Terminal:
    """The screen of one program that runs in tmux."""

    def __init__(self, name: str, env: dict[str, str]) -> None:
        self._command = ["tmux", "-L", name, "-f", "/dev/null"]
        self._env = env

    def start(self, command: list[str], directory: Path) -> None:
        """Run a program in a new terminal."""
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        line = "exec " + shlex.join(command)
        self._tmux("new-session", "-d", "-s", "m", *size, "-c", str(directory), line)
        self._tmux("set-option", "-t", "m", "remain-on-exit", "on")

    def stop(self) -> None:
        """End the program and its terminal."""
        self._tmux("kill-server")

    def screen(self) -> str:
        """What is to be seen."""
        return self._tmux("capture-pane", "-p", "-t", "m")

    def ended(self) -> bool:
        """Whether the program has ended."""
        return self._tmux("list-panes", "-t", "m", "-F", "#{pane_dead}").strip() != "0"

    def press(self, *keys: str) -> None:
        """Press keys by their tmux names, as fast as a quick person."""
        for key in keys:
            self._tmux("send-keys", "-t", "m", key)
            time.sleep(0.15)

    def type(self, text: str) -> None:
        """Type a text where the cursor is."""
        self._tmux("send-keys", "-t", "m", "-l", text)

    def clear(self) -> None:
        """Empty the line."""
        self.press("C-e", "C-u")
        self.settle(0.2, 2)

    def leave(self) -> None:
        """Close a dialog."""
        self.press("Escape")
        self.settle(0.3, 3)

    def write(self, text: str) -> None:
        """Type a text, again if the program has swallowed some of it."""
        for _ in range(3):
            self.clear()
            self.type(text)
            if self.shows(re.escape(text.rsplit(maxsplit=1)[-1][-12:]), within_s=4):
                return
        raise AssertionError(f"cannot be typed: {text}\n{self.screen()}")

    def prompt(self, text: str) -> None:
        """Type a text and send it."""
        self.write(text)
        self.press("Enter")

    def slash(self, command: str) -> None:
        """Give a command of the interface."""
        self.write(f"/{command}")
        self.settle()
        self.press("Enter")
        self.settle()

    def wait(self, pattern: str, *, within_s: float = WITHIN_S, absent: bool = False) -> None:
        """Nothing, once the pattern is on the screen, or no longer there."""
        seen = self.shows(pattern, within_s=within_s, absent=absent)
        what = "still there" if absent else "not there"
        assert seen, f"{what} after {within_s:g} s: {pattern}\n{self.screen()}"

    def shows(self, pattern: str, *, within_s: float, absent: bool = False) -> bool:
        """Whether the pattern comes to the screen in time, or leaves it."""
        end = time.monotonic() + within_s
        while True:
            screen = self.screen()
            if (re.search(pattern, screen, re.MULTILINE) is None) == absent:
                return True
            assert not CRASHED.search(screen), screen
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_EVERY_S)

    def settle(self, quiet_s: float = 0.4, within_s: float = 6) -> None:
        """Wait until nothing has changed for a while; keys that come earlier can be lost."""
        end, since, last = time.monotonic() + within_s, time.monotonic(), ""
        while time.monotonic() < end and time.monotonic() - since < quiet_s:
            screen = self.screen()
            if screen != last:
                since, last = time.monotonic(), screen
            time.sleep(LOOK_EVERY_S)

    def rests(self) -> None:
        """Wait until the interface says that nothing runs."""
        self.wait(r"esc (again to )?interrupt", absent=True)

    def _tmux(self, *words: str) -> str:
        command = [*self._command, *words]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        return done.stdout


@contextmanager
def attached(
    program: Path, *, url: str, password: str, directory: Path, root: Path
) -> Iterator[Terminal]:
    """The terminal interface of a program, attached to a server."""
    colors = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
    env = environment(root, OPENCODE_SERVER_PASSWORD=password, **colors)
    terminal = Terminal(f"pegboard-{root.parent.name}-{root.name}", env)
    terminal.start([str(program), "attach", url, "--dir", str(directory)], directory)
    try:
        yield terminal
    finally:
        terminal.stop()
