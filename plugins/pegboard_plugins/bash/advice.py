"""What is told of a line that is unclear: what of it, where, and how to write it instead."""

from typing import NamedTuple

from pegboard_plugins.bash.syntax import Unclear

_SHOWN = 72
"""So many letters of the line are shown around the place."""

SAYINGS = {
    "ansi-string": ("holds letters in $'..' that are no ASCII", "write the letters themselves"),
    "array": ("gives an array named or computed elements", "use plain variables"),
    "awk-option": ("gives awk an option that is not known", "give the program in quotes"),
    "awk-program": ("lets awk run or open something", "print, and redirect or pipe what it prints"),
    "backticks": ("holds signs in backticks that are read twice", "write $(...) instead"),
    "brace": ("has braces that come to more than words", "write the words out"),
    "bracket": ("opens a bracket that is no plain set of letters", "put it into quotes"),
    "builtin-option": ("gives a builtin an option that is not known", "leave the option out"),
    "calculation": (
        "calculates with what may be more than a number",
        "calculate with literal numbers, or with the output of wc -l",
    ),
    "carrier": ("has a program run what its words say", "call the command by itself"),
    "case-in-substitution": ("has a case inside of $(...)", "put the case in front of it"),
    "character": ("has a sign that has no meaning there", "put it into quotes"),
    "code-on-stdin": (
        "runs code that comes from a pipe",
        "save it to a file, read it and run the file",
    ),
    "comment-in-substitution": ("has a comment inside of $(...)", "leave the comment out"),
    "control-char": ("holds control characters", "leave them out, or write them as in $'\\t'"),
    "dialect": (
        "is code that this shell reads otherwise than bash",
        "write it as POSIX sh does, or give it to bash -c",
    ),
    "dynamic-args": ("names a file that is only known when it runs", "write its name out"),
    "dynamic-code": (
        "has code that is only known when it runs",
        "write it out, or put it into a file and run that",
    ),
    "dynamic-command": ("runs a program that is only known then", "write its name out"),
    "dynamic-cwd": ("goes to a folder that is only known when it runs", "write it out"),
    "dynamic-path": ("writes a file that is only known when it runs", "write its name out"),
    "env-hijack": (
        "sets a variable that makes programs run others",
        "leave it out, or call those by name",
    ),
    "expansion": (
        "has a ${...} that does more than to take a value",
        "take the value into a variable first, as $(...) outside of the braces",
    ),
    "find-test": ("gives find a test that is not known", "leave it out, or write it out"),
    "for-without-in": ("has a for without a list", "write for NAME in LIST"),
    "git-command": ("calls an alias or an unknown command of git", "call the command itself"),
    "git-option": ("gives git an option that may run a program", "leave the option out"),
    "here-document": (
        "has a here-document that ends or begins where it is read otherwise",
        "put the name alone in a line, and nothing else with it",
    ),
    "here-document-name": ("names a here-document with half a quote", "write <<'NAME'"),
    "line-continuation": ("has a word that goes on in the next line", "write it in one line"),
    "name": ("gives a builtin what is no plain name", "write the variable's name out"),
    "nested-too-deep": ("nests too much in each other", "run it step by step"),
    "network": ("opens the network by a file's name", "use curl for what is fetched"),
    "option-runs": ("has an option that runs another program", "run that program by itself"),
    "parenthesis": ("has a parenthesis that begins nothing known", "put it into quotes"),
    "process-substitution": ("has a <(...) inside of a word", "put a blank in front of it"),
    "redefinition": ("gives a known command another meaning", "choose another name"),
    "redirection": ("has a redirection that is not known", "write > FILE, < FILE or 2>&1"),
    "regex": ("has an expression behind =~ that is not known", "use grep -qE"),
    "reserved-word": ("has a word of the shell where a command should be", "write it plainly"),
    "runner-option": ("has a tool run code, or with other options", "call the command by itself"),
    "sed-option": ("gives sed an option that is not known", "give the script with -e"),
    "sed-script": (
        "has a sed script that is not plain",
        "use s, p, d, a, i and c with literal text",
    ),
    "shell-option": ("changes how the shell reads", "leave the option out"),
    "syntax": ("is no syntax that is known here", "write it more plainly, or in several calls"),
    "test-v": ("tests a variable by a name that is computed", "use [[ -n $NAME ]]"),
    "tilde": ("has a ~ that stands for no home", "write the folder out"),
    "too-long": ("is too long", "write the text to a file with the tool for that"),
    "unfinished": ("does not end", "close the quote, the parenthesis or the block"),
    "unicode-bidi": ("holds marks that turn the direction of writing", "leave them out"),
    "unicode-confusable": ("mixes letters that look alike", "write the word in one alphabet"),
    "unicode-invisible": ("holds letters that nobody sees", "leave them out"),
    "wrapper": ("may have a program run a command in its words", "call the command by itself"),
    "wrapper-option": (
        "has options in front of a command that are not known",
        "call the command by itself, as in timeout 5 COMMAND",
    ),
}
"""For each code what the line does, and how to write it instead."""


class Advice(NamedTuple):
    """What is unclear and the way out; `marked` is the line's part with its place underlined."""

    code: str
    said: str
    instead: str
    column: int
    marked: str

    @property
    def sentence(self) -> str:
        """All of it in one sentence or two."""
        return (
            f"Pegboard cannot tell what this line would run: it {self.said}"
            f" ({self.code}, column {self.column}). Instead: {self.instead}"
        )


def advised(error: Unclear, command: str) -> Advice:
    """What is told of a line that is unclear for this reason."""
    said, instead = SAYINGS[error.code]
    start = min(error.start, max(len(command) - 1, 0))
    line_start = command.rfind("\n", 0, start) + 1
    line = command[line_start:].partition("\n")[0]
    column = start - line_start
    first = max(0, min(column - _SHOWN // 2, len(line) - _SHOWN))
    shown = line[first : first + _SHOWN]
    length = max(1, min(error.end - start, len(shown) - (column - first)))
    marked = f"{shown}\n{' ' * (column - first)}{'^' * length}"
    return Advice(error.code, said, instead, column + 1, marked)
