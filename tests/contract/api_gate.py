"""What a change of the public names breaks for those who rely on the last release."""

import ast
import re
from collections.abc import Collection, Iterator

_MARKS = re.compile(r"^(?:@\w+ )+")


def broken(before: str, now: str, *, moved: Collection[str] = ()) -> list[str]:
    """Return what `now` breaks of what `before` promised, each as `ring.name: what is wrong`.

    Both are texts as `contract.public_api` prints them. The names of `moved` are those whose old
    place still leads to them.
    """
    old, new = _promises(before), _promises(now)
    return [
        f"{place}: {fault}"
        for place, was in old.items()
        if place not in moved
        for fault in _faults(was, new.get(place, {}))
    ]


def _promises(text: str) -> dict[str, dict[str, str]]:
    """Return the lines of each class, function or constant by the names of its members."""
    found: dict[str, dict[str, str]] = {}
    ring = place = ""
    for line in text.splitlines():
        if line.startswith("# "):
            ring = line[2:]
        elif line.startswith("  "):
            found[place].setdefault(_name(line.strip()), line.strip())
        elif line and not line.startswith("## "):
            place = f"{ring}.{_name(line)}"
            found.setdefault(place, {}).setdefault("", line)
    return found


def _name(line: str) -> str:
    """Return the name that a line defines."""
    bare = _MARKS.sub("", line)
    match = re.match(r"(?:async def|def|class)? ?(\w+)", bare)
    assert match, line
    return match[1]


def _faults(was: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    if not now:
        yield "is gone; keep it as a moved name"
        return
    for member, line in was.items():
        if member not in now:
            yield f"{member} is gone"
        elif line != now[member]:
            said = f"{member} " if member else ""
            yield from (f"{said}{fault}" for fault in _changes(line, now[member]))
    for member in now.keys() - was.keys():
        line = now[member]
        if not line.startswith(("def", "async", "@")) and "=" not in line:
            yield f"{member} is a new field without a default"


def _changes(was: str, now: str) -> Iterator[str]:
    """Yield how a line promises less than it did."""
    old, new = _function(was), _function(now)
    if old is None or new is None:
        if not now.startswith(was):  # a default was added
            yield f"was `{was}` and is `{now}`"
        return
    if isinstance(old, ast.AsyncFunctionDef) != isinstance(new, ast.AsyncFunctionDef):
        yield "is awaited no longer, or must be now"
    kept = {each.arg: each for each in _arguments(new)}
    for each in _arguments(old):
        if each.arg not in kept:
            yield f"has no argument {each.arg}"
        elif _types(each) - _types(kept[each.arg]):
            yield f"takes fewer types for {each.arg}"
    for name in sorted(_required(new) - _required(old)):
        yield f"needs the argument {name}"
    positional = _positional(old)
    if _positional(new)[: len(positional)] != positional:
        yield "takes its arguments in another order"


def _function(line: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    bare = _MARKS.sub("", line)
    if not bare.startswith(("def ", "async def ")):
        return None
    [node] = ast.parse(f"{bare}: ...").body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _positional(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [each.arg for each in (*node.args.posonlyargs, *node.args.args)]


def _required(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the names of the arguments without a default."""
    args = node.args
    places = [*args.posonlyargs, *args.args]
    optional = len(args.defaults)
    required = {each.arg for each in (places[:-optional] if optional else places)}
    pairs = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return required | {each.arg for each, default in pairs if default is None}


def _types(arg: ast.arg) -> set[str]:
    """Return the types that an argument may have, spelt out."""
    if arg.annotation is None:
        return set()
    return {part.strip() for part in ast.unparse(arg.annotation).strip("'").split(" | ")}
