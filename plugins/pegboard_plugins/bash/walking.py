"""A walk through the tree of a command line: each part is told to the findings."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from pegboard_plugins.bash.changes import assign, assign_each
from pegboard_plugins.bash.feeding import of_parts, of_redirections
from pegboard_plugins.bash.findings import Findings
from pegboard_plugins.bash.judging import DEEPEST, is_vital, judge
from pegboard_plugins.bash.misread import (
    in_order,
    is_confused,
    is_run_together,
    joins_words,
    readings,
)
from pegboard_plugins.bash.nodes import (
    CARRIAGE_RETURN,
    gaps,
    inside_of_test,
    left_over,
    returned,
    squeezed,
    text_of,
    unread,
)
from pegboard_plugins.bash.signs import suspicions, whole
from pegboard_plugins.bash.words import Word, read_word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST_COMMAND = 16 << 10
"""Letters: the parser takes quadratic time for some wrong lines, a second for so long a one."""
_ARITHMETIC = frozenset({"arithmetic_expansion", "c_style_for_statement", "subscript"})
_REDIRECTIONS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_WITHOUT_GAPS = frozenset(
    {
        *("program", "list", "pipeline", "command", "redirected_statement", "subshell"),
        *("compound_statement", "do_group", "negated_command", "command_substitution"),
        *("process_substitution", "declaration_command", "unset_command", "if_statement"),
    }
)
"""What the parser skips in them without a word is no blank."""
_TRANSFORMED = re.compile(r"\$\{!|@[A-Za-z]\}$|^\$\{\w+(\[[^\]]*\])?:?=")
_EXITS = re.compile(r"(\{\s(.*[;\n])?\s*)?exit(\s+[\w$?]+)?(?(1)\s*[;\n]\s*\})", re.DOTALL)
"""It ends the shell; `return` does not outside of functions, nor `break` outside of loops."""
_SPLITTING = frozenset({"read", "mapfile", "readarray"})
"""They alone split by the `IFS` that stands before them."""
_COMPARES = re.compile(r"\s-(eq|ne|lt|le|gt|ge)\s|\s-v\s")


def _parser() -> "Parser":
    # 30 ms that a session without shell commands does not pay.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def walk_text(text: str, findings: Findings, depth: int) -> None:
    """Tell all that the text would run and touch; `depth` counts levels of `sh -c`."""
    if len(text) > LONGEST_COMMAND or depth > DEEPEST:
        findings.doubt("nested-too-deep" if depth > DEEPEST else "too-long")
        return
    for suspicion in suspicions(text):
        findings.doubt(suspicion)
    if "\0" in text:  # no shell can be given it, nor can the system as a part of a path
        findings.run((text.strip(),))
        text = text.replace("\0", "\ufffd")
    if "\\\n" in text:
        if re.search(r"['\"#]|<<|\S\\\n\S", text):
            findings.doubt("line-continuation", unknown=joins_words(text))
            _visit_apart(text, findings, depth)
        text = text.replace("\\\n", "")
    text = in_order(text)
    _visit_tree(text, findings, depth)
    _visit_misread(text, findings, depth)


def _visit_apart(text: str, findings: Findings, depth: int) -> None:
    """Tell what the text would run as it is; the state of the walk is left as it was."""
    before = (findings.cwd, dict(findings.values), findings.strays, findings.strict)
    _visit_tree(text, findings, depth)
    findings.cwd, findings.values, findings.strays, findings.strict = before


def _visit_misread(text: str, findings: Findings, depth: int) -> None:
    """Tell again what the parser takes for something else than the shell does."""
    for reading in readings(text):
        for argv in reading.commands:
            findings.run(argv)
        if reading.is_doubtful:
            findings.doubt("parse-error")
        _visit_tree(reading.text, findings, depth)


def _visit_tree(text: str, findings: Findings, depth: int) -> None:
    line = whole(text).replace("\r", CARRIAGE_RETURN)
    root = _parser().parse(line.encode(errors="surrogateescape")).root_node
    if root.has_error or is_confused(line, root):
        findings.doubt("parse-error")
    _Walk(findings, depth).visit(root)


class _Walk:
    """A walk through the tree of one text, `depth` levels of `sh -c` below the line itself."""

    def __init__(self, findings: Findings, depth: int) -> None:
        self._found = findings
        self._depth = depth

    def visit(self, node: "Node") -> None:
        if node.type in _WITHOUT_GAPS and any(gap != "-" for gap in gaps(node)):
            self._found.doubt("parse-error")
        self._steps.get(node.type, _Walk._other)(self, node)

    def _assignment(self, node: "Node") -> None:
        self._children(node)
        pairs = node.children if node.type == "variable_assignments" else [node]
        self._assignments(pairs)
        self._found.run(self._argv(pairs))

    def _here_document(self, node: "Node") -> None:
        """Its body is code where its name is not quoted; the parser overlooks some of it."""
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        is_code = start is not None and re.search(r"['\"\\]", text_of(start)) is None
        for child in node.children:
            if child.type == "heredoc_body" and is_code and re.search(r"`|\$[({]", unread(child)):
                self._found.doubt("parse-error")
                quoted = text_of(child).replace('"', '\\"')
                walk_text(f': "{quoted}"', self._found, self._depth + 1)
        self._children(node)

    def _file_redirect(self, node: "Node") -> None:
        self._children(node)
        self._redirect(node)

    def _function(self, node: "Node") -> None:
        name = node.child_by_field_name("name")
        called = "" if name is None else text_of(name)
        self._found.doubt("redefinition", unknown=is_vital(called))
        arguments, self._found.arguments = self._found.arguments, ()
        self._body(node)
        self._found.arguments = arguments
        self._found.functions[called] = partial(self._body, node, called=True)

    def _body(self, node: "Node", *, called: bool = False) -> None:
        """What a function does; its `"$@"` is what it is given, if it takes nothing of that."""
        if re.search(r"\b(shift|set)\b", text_of(node)):
            self._found.arguments = None
        if called:
            self._children(node)
        else:
            self._in_scope(node)

    def _statement(self, node: "Node") -> None:
        """`declare`, `export` and `unset` are commands, but not for the parser."""
        self._children(node)
        judge(self._words(node.children), self._found, self._depth, walk_text)

    def _other(self, node: "Node") -> None:
        if node.type in _ARITHMETIC:
            self._calculation(node)
        if node.type == "compound_statement" and text_of(node).startswith("(("):
            self._calculation(node)
            self._found.run((squeezed(text_of(node)),))
        self._children(node)

    def _children(self, node: "Node") -> None:
        for child in node.children:
            following = child.next_sibling
            if following is not None and following.type == "&":
                self._in_scope(child, itself=True)
            else:
                self.visit(child)
            self._found.settle()

    def _in_scope(self, node: "Node", *, itself: bool = False) -> None:
        """What happens in a shell of its own: its directory and its variables end with it."""
        cwd, fed, values = self._found.cwd, self._found.fed, dict(self._found.values)
        strays, strict, home = self._found.strays, self._found.strict, self._found.home
        self._found.strays = ()
        if is_run_together(text_of(node)):
            self._found.doubt("parse-error")
        if itself:
            self.visit(node)
        else:
            for number, child in enumerate(node.children):
                if node.type == "pipeline":
                    self._found.cwd = cwd
                    self._found.fed = of_parts(node, number, self._found) if number else fed
                self.visit(child)
                self._found.settle()
        self._found.cwd, self._found.fed, self._found.values = cwd, fed, values
        self._found.strays, self._found.strict, self._found.home = strays, strict, home

    def _list(self, node: "Node") -> None:
        """`a && b` goes on where `a` left; after `a || b` it may be in either place."""
        is_or = any(child.type == "||" for child in node.children)
        first, *others = (child for child in node.children if child.is_named)
        strict, self._found.strict = self._found.strict, False  # a failure of it ends nothing
        self.visit(first)
        self._found.strict |= strict
        for child in others:
            if is_or:
                self._otherwise(child)
            else:
                strays, self._found.strays = self._found.strays, ()
                self.visit(child)
                self._found.strays += strays

    def _otherwise(self, node: "Node") -> None:
        """What runs where a `cd` may have failed; when it ends the line, none has."""
        reached = self._found.cwd
        self._found.settle()
        self._branch(node, itself=True)
        if _EXITS.fullmatch(text_of(node)):
            self._found.cwd = reached

    def _branch(self, node: "Node", *, itself: bool = False) -> None:
        before = dict(self._found.values)
        self._found.branches += 1
        if itself:
            self.visit(node)
        else:
            self._children(node)
        self._found.branches -= 1
        self._found.join(before)

    def _loop(self, node: "Node") -> None:
        """Twice, so that the second time begins where the first has left."""
        if node.type == "c_style_for_statement":
            self._calculation(node)
        self._loop_variable(node)
        before = self._found.cwd
        self._branch(node)
        if self._found.cwd != before:
            self._found.doubt("dynamic-cwd")
            self._branch(node)

    def _loop_variable(self, node: "Node") -> None:
        name = node.child_by_field_name("variable")
        if name is None:
            return
        words = self._words(node.children_by_field_name("value"))
        assign_each(text_of(name), words, self._found)

    def _redirected(self, node: "Node") -> None:
        """A body and its redirections, which are opened before it runs.

        After `a && b > f` the file is opened where `a` has left.
        """
        body = node.child_by_field_name("body")
        redirections = [child for child in node.children if child.type in _REDIRECTIONS]
        fed = self._found.fed
        for child in redirections:
            self.visit(child)
        self._found.fed = of_redirections(redirections, self._found) or fed
        if body is not None and body.type == "command":
            self._command(body, more=left_over(redirections), skipped=gaps(node))
        elif body is not None:
            self.visit(body)
            if body.type == "list":
                self._found.branches += 1
                for child in redirections:
                    self.visit(child)
                self._found.branches -= 1
        elif not any(child.type == "command" for child in node.children):
            self._found.run((squeezed(text_of(node)),))
        self._found.fed = fed

    def _command(
        self, node: "Node", *, more: "Sequence[Node]" = (), skipped: Sequence[str] = ()
    ) -> None:
        parts = [*node.children, *more]
        fed = self._found.fed
        self._found.fed = of_redirections(parts, self._found) or fed
        for child in parts:
            if child.type == "variable_assignment":
                self._children(child)
            else:
                self.visit(child)
        assignments = [child for child in parts if child.type == "variable_assignment"]
        is_read = any(text_of(child) in _SPLITTING for child in parts)
        values, home = dict(self._found.values), self._found.home
        self._assignments(
            [node for node in assignments if not (is_read and text_of(node).startswith("IFS="))]
        )
        self._found.values, self._found.home = values, home
        arguments = [
            child for child in parts if child not in assignments and child.type not in _REDIRECTIONS
        ]
        arguments += left_over([child for child in parts if child.type in _REDIRECTIONS])
        words = self._without_descriptors(self._words(arguments))
        words += [Word(text) for text in skipped]
        if words:
            raw = squeezed(text_of(node))
            if words[0].dynamic and raw != " ".join(word.text for word in words):
                self._found.run((raw,))
            judge(words, self._found, self._depth, walk_text)
        self._found.fed = fed

    def _without_descriptors(self, words: list[Word]) -> list[Word]:
        """The words without `{name}`, which the shell takes as a part of a redirection."""
        for word in words[1:]:
            if word.bare and (found := re.fullmatch(r"\{(\w+)\}", word.text)):
                self._found.descriptors.add(found[1])
        named = re.compile(r"\{[A-Za-z_]\w*\}")
        return [word for word in words if not (word.bare and named.fullmatch(word.text))]

    def _redirect(self, node: "Node") -> None:
        target = node.child_by_field_name("destination")
        if target is None or target.type == "process_substitution":
            return
        word = read_word(target, self._found.home)
        operator = next((child.type for child in node.children if not child.is_named), "")
        if operator in (">&", "<&") and self._is_descriptor(word):
            return
        values = self._found.known(word)
        if values is None or len(values) > 1:
            unknown = values is None and self._found.is_unknown(word)
            self._found.doubt("dynamic-path", unknown=unknown)
        for value in values or ():
            if value.text.startswith(("/dev/tcp/", "/dev/udp/")):
                self._found.doubt("network", unknown=True)
            self._found.touch(value, write="<" not in operator or operator == "<>")

    def _is_descriptor(self, word: Word) -> bool:
        name = word.text.strip("${}")
        return re.fullmatch(r"\d+-?|-", word.text) is not None or (
            word.dynamic and name in self._found.descriptors
        )

    def _assignments(self, nodes: "Sequence[Node]") -> None:
        pairs = []
        for node in nodes:
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if node.type == "variable_assignment" and name is not None:
                word = Word("") if value is None else read_word(value, self._found.home)
                sign = "+" if any(child.type == "+=" for child in node.children) else ""
                pairs.append((re.split(r"\[", text_of(name))[0] + sign, word))
        assign(pairs, self._found)

    def _expansion(self, node: "Node") -> None:
        if _TRANSFORMED.search(text_of(node)):
            is_code = re.match(r"\$\{!\w+\}|.*@P\}$", text_of(node), re.DOTALL) is not None
            self._found.doubt("param-transform", unknown=is_code)
        self._children(node)

    def _test(self, node: "Node") -> None:
        text = " ".join(self._argv(node.children))
        self._children(node)
        if _COMPARES.search(f" {text} "):
            self._calculation(node)
            if "[" in text[2:] and re.search(r"[$`]", text):
                self._found.doubt("arith-eval", unknown="$(" in text or "`" in text)
        first, last = text_of(node.children[0]), text_of(node.children[-1])
        self._found.run((first, inside_of_test(node, self._found.home), last))

    def _calculation(self, node: "Node") -> None:
        text = text_of(node)
        if re.search(r"[A-Za-z_]", text.partition("[")[2] if node.type == "subscript" else text):
            self._found.calculates = True

    def _words(self, nodes: "Sequence[Node]") -> list[Word]:
        # No word begins with a line's end: the parser has taken it from a here-document.
        if any(text_of(node).startswith("\n") for node in nodes):
            self._found.doubt("parse-error")
        return [returned(read_word(node, self._found.home)) for node in nodes]

    def _argv(self, nodes: "Sequence[Node]") -> tuple[str, ...]:
        return tuple(word.text for word in self._words(nodes))

    _steps: ClassVar[Mapping[str, Callable[["_Walk", "Node"], None]]] = {
        "command": _command,
        "redirected_statement": _redirected,
        "file_redirect": _file_redirect,
        "heredoc_redirect": _here_document,
        "variable_assignment": _assignment,
        "variable_assignments": _assignment,
        "list": _list,
        "function_definition": _function,
        "expansion": _expansion,
        "test_command": _test,
        **dict.fromkeys(("declaration_command", "unset_command"), _statement),
        **dict.fromkeys(
            ("subshell", "pipeline", "command_substitution", "process_substitution"), _in_scope
        ),
        **dict.fromkeys(("if_statement", "case_statement", "elif_clause", "else_clause"), _branch),
        **dict.fromkeys(("while_statement", "for_statement", "c_style_for_statement"), _loop),
    }
