"""A grammar of shell lines that read, write and destroy files, in honest and in odd ways.

Its names are those of the tree in `file_box.py`. In a template `<F>` is a file that is there,
`<D>` a folder, `<N>` a name that is not there yet, `<P>` any of them, `<G>` a wildcard, `<B>`
braces, `<W>` a word, `<C>` a command, `<S>` one that may stand in single quotes.
"""

import json
import re
from random import Random

from plugins.bash.file_box import FOLDERS, OTHERS, PLAIN
from support.tools.cases import DATA

PARTS = json.loads((DATA / "file_lines.json").read_text(encoding="utf-8"))
FILES = (*PLAIN * 4, *OTHERS, *PARTS["files"])
FOLDERS_AGAIN = (
    *(".", "..", "../proj", "~", "link_dir", "./src", "$PWD", '"$PWD/src"', "$(pwd)/docs", "s*"),
    *("[d]ocs", "src/", "{src,docs}", "/tmp", "$HOME/docs", "~/docs", "link_up"),
)
BEFORE = ("./", "$PWD/", '"$PWD"/', "~/proj/", "../proj/", "src/../", "$HOME/proj/", ".//")
WORDS = ("w", "w.txt", "a.txt", "x", "config")
_KINDS = ("", "linked", "far", "globs", "braces", "outputs")
_SHARES = (70, 6, 5, 7, 5, 7)
_RESERVED = re.compile(r"[^a-z]|(for|while|if|until|exec)\b|.*\n|\w+=")
_HOLE = re.compile(r"<([A-Z])>")


class LineMaker:
    """Makes lines up, always the same ones for a seed."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.is_alone = True
        self.holes = {
            "F": self.file,
            "D": self.folder,
            "N": self.new,
            "P": self.path,
            "G": lambda: self.random.choice(PARTS["globs"]),
            "B": lambda: self.random.choice(PARTS["braces"]),
            "W": lambda: self.random.choice(WORDS),
            "C": self.command,
            "S": self.coded,
        }

    def line(self):
        """A line of one or several commands."""
        template = self.random.choice(PARTS["lists"])
        self.is_alone = template == "<C>"
        return self.filled(template)

    def filled(self, template):
        """The template with all its holes filled."""
        return _HOLE.sub(lambda hole: self.holes[hole[1]](), template)

    def command(self):
        """A command, sometimes behind a wrapper."""
        template = self.random.choice(PARTS["commands"])
        while "\n" in template and not self.is_alone:
            template = self.random.choice(PARTS["commands"])
        command = self.filled(template)
        if self.random.random() < 0.12 and not _RESERVED.match(command):
            return self.filled(self.random.choice(PARTS["wrappers"])).replace("{}", command, 1)
        return command

    def coded(self):
        """A command as it may stand in single quotes."""
        for _ in range(20):
            command = self.command()
            if "'" not in command and "\n" not in command:
                return command
        return "rm a.txt"

    def path(self):
        """A file, a folder or a name that is not there yet."""
        return self.random.choice((self.file, self.folder, self.new))()

    def file(self):
        """A file that is there, in one way or another."""
        kind = self.random.choices(_KINDS, _SHARES)[0]
        if kind:
            return self.random.choice(PARTS[kind])
        before = self.random.choice((*[""] * 8, *BEFORE))
        return before + self.spelled(self.random.choice(PLAIN if before else FILES))

    def folder(self):
        """A folder that is there, in one way or another."""
        if self.random.random() < 0.7:
            return self.spelled(self.random.choice(FOLDERS))
        return self.random.choice(FOLDERS_AGAIN)

    def new(self):
        """A name that is not there yet."""
        name = self.random.choice(PARTS["new"])
        if self.random.random() < 0.25:
            return f"{self.folder().rstrip('/')}/{re.sub(r'.*/|[- ]', '', name)}"
        return self.spelled(name)

    def spelled(self, name):
        """A name as it may be written in a shell."""
        needs_quotes = re.search(r"[ \[\]]", name) is not None
        kind = self.random.randrange(10)
        if kind == 0 or (needs_quotes and kind < 5):
            return f'"{name}"'
        if kind == 1 or (needs_quotes and kind < 8):
            return f"'{name}'"
        if needs_quotes:
            return re.sub(r"([ \[\]])", r"\\\1", name)
        if kind == 2 and len(name) > 2:
            return f'{name[:2]}"{name[2:]}"'
        if kind == 3 and name[0].isalpha():
            return f"\\{name}"
        return name


def file_lines(number, seed):
    """So many lines, always the same ones for a seed."""
    maker = LineMaker(seed)
    return [maker.line() for _ in range(number)]
