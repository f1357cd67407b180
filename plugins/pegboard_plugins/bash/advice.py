"""What is told of a line that nobody can judge: what is not known, and the way out."""

from collections.abc import Iterable

_SAID = {
    "arith-eval": "what is calculated may run a command; use a number, or the output of wc -l",
    "code-on-stdin": "the code comes from a pipe; save it to a file, read it and run the file",
    "control-char": "it holds control characters; leave them out, or write them as in $'\\t'",
    "dynamic-args": "which file is meant is only known when it runs; write its name out",
    "dynamic-code": "the code is only known when it runs; write it out, or run a file",
    "dynamic-command": "which program is meant is only known when it runs; write its name out",
    "dynamic-cwd": "the folder is only known when it runs; write it out",
    "dynamic-path": "which file is written is only known when it runs; write its name out",
    "env-hijack": "the variable makes programs run others; leave it out, or call those by name",
    "exec-flag": "an option runs a command that is not judged; run that command by itself",
    "interpreter-code": "the script runs a command; run that command by itself",
    "line-continuation": "a word goes on in the next line; write it in one",
    "nested-too-deep": "too much is nested in it; run it step by step",
    "network": "it gives a shell or a file to the network; use curl for what is fetched",
    "param-transform": "a variable's value is used as code or as a name; write it out",
    "parse-error": "it cannot be parsed; write it more plainly, or in several calls",
    "redefinition": "it gives a known command another meaning; choose another name",
    "too-long": "it is too long to be judged; write the text to a file with the tool for that",
    "unicode-bidi": "it holds marks that turn the direction of writing; leave them out",
    "unicode-confusable": "a word mixes letters that look alike; write it in one alphabet",
    "unicode-invisible": "it holds letters that nobody sees; leave them out",
}


def advised(codes: Iterable[str]) -> list[str]:
    """A sentence for each of these doubts, with the doubt's name in front."""
    return [f"{code}: {_SAID[code]}" for code in codes]
