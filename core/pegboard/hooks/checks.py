"""The checks of hooks' answers; an invalid answer counts as a failure of the plugin.

The return annotation of the hook's specification defines the valid type. msgspec does not check
a struct's fields when Python code makes the struct, so a check decodes its JSON form. For other
classes and protocols, a check only tests that the object is an instance. A check returns the
answer, with a list made a tuple where the hook wants a tuple. Otherwise it raises `TypeError` or
`ValueError`, whose message names the expected type.
"""

import inspect
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import compress
from operator import is_
from types import NoneType, UnionType
from typing import Any, Literal, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import astuple

from pegboard.contract.plugin import Check, mark_of
from pegboard.contract.tools import Tool
from pegboard.schema.part import FileInput

EXAMPLE_FIELDS = 4
"""A struct that needs more has a page for it, and no example in a message."""
LIMIT_BYTES = 16 << 20
"""The JSON size of an answer: more is a plugin's mistake, and would not fit a request.

A file can have twice as much, since a picture grows by a third when it is encoded.
"""

_T = TypeVar("_T")


@cache
def check_of(spec: Callable[..., object]) -> Check:
    """Return the check of a hook's answers: by the annotated type, then by the hook's `check`."""
    answer, own = get_type_hints(spec)["return"], mark_of(spec).check
    wanted = [kind for kind in get_args(answer) if kind is not NoneType]
    typed = _check_for(wanted[0] if len(wanted) == 1 else answer)
    return typed if own is None else lambda answer, before: own(typed(answer, before), before)


def _check_for(annotation: type) -> Check:
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation in (NoneType, object, Any):
        return lambda answer, _: answer
    if origin in (tuple, Sequence):
        return _sequence_of(_check_for(inner[0]), inner[0])
    if origin is Mapping:
        return _mapping_of(_check_for(inner[0]), _check_for(inner[1]), inner[1])
    if origin is Callable:
        return _called
    united = origin in (Union, UnionType)
    annotation = annotation if united else origin or annotation
    if united or annotation is str or issubclass(annotation, msgspec.Struct):
        return lambda answer, before: _sound(answer, before, annotation)
    return lambda answer, _: _instance(answer, annotation)


def _sequence_of(check: Check, kind: object) -> Check:
    """Return a check of a sequence that tests each item, except items that `before` contains."""

    def checked(answer: object, before: object) -> object:
        known = set(map(id, before)) if isinstance(before, tuple) else set()
        if not isinstance(answer, tuple | list):
            of, example = _named(kind), _example(kind)
            such = f", such as ({example},)" if example else ""
            raise TypeError(f"{_name(answer)} where a tuple{of} is expected{such}")
        return tuple([item if id(item) in known else check(item, None) for item in answer])

    return checked


def _mapping_of(key: Check, value: Check, kind: object) -> Check:
    def checked(answer: object, _: object) -> object:
        if not isinstance(answer, Mapping):
            text = f"{_name(answer)} where a mapping of names{_named(kind, 'to')} is expected"
            raise TypeError(text)
        return {key(name, None): _entry(name, item, value) for name, item in answer.items()}

    return checked


def _entry(name: object, item: object, check: Check) -> object:
    try:
        return check(item, None)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error


def _called(answer: object, _: object) -> object:
    if not callable(answer):
        raise TypeError(f"{_name(answer)} where a function is expected")
    return answer


def _sound(answer: object, before: object, kind: type) -> object:
    """Check a value and all its fields, except fields that are the same objects as in `before`.

    Skipping them saves time: a plugin changes few fields, and a request has a long history.
    """
    if not isinstance(answer, kind):
        such = f", such as {example}" if (example := _example(kind)) else ""
        raise TypeError(f"{_name(answer)} where {_name_of(kind)} is expected{such}")
    if not isinstance(answer, msgspec.Struct) or type(answer) is not type(before):
        _fits_json(answer, kind)
        return answer
    values = zip(astuple(answer), astuple(before), strict=True)
    for (name, wanted), (value, known) in zip(_fields(type(answer)), values, strict=True):
        if value is known or _is_copy(value, known):
            continue
        try:
            _fits_json(_news(value, known, wanted), wanted)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}={reprlib.repr(value)}: {error}") from error
    return answer


def _is_copy(value: object, before: object) -> bool:
    """Return whether both values are dicts with the same keys in order, and the same objects."""
    if type(value) is not dict or type(before) is not dict or [*value] != [*before]:
        return False
    return all(map(is_, value.values(), before.values()))


def _news(value: object, before: object, kind: object) -> object:
    """Return the part of an answer that differs from `before` and therefore needs a check.

    From a tuple of any length, items that are the same objects as in `before` are removed.
    """
    if isinstance(value, tuple) and isinstance(before, tuple) and get_args(kind)[-1:] == (...,):
        known = set(map(id, before))
        return tuple(compress(value, [each not in known for each in map(id, value)]))
    return dict(value) if isinstance(value, Mapping) else value


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    return tuple((each.name, each.type) for each in msgspec.structs.fields(kind))


def _fits_json(value: object, kind: Any) -> None:  # noqa: ANN401 - an annotation
    """Reject a value whose JSON form is too large or does not match the type `kind`."""
    encoded = msgspec.json.encode(value)
    limit = 2 * LIMIT_BYTES if isinstance(value, FileInput) else LIMIT_BYTES
    if len(encoded) > limit:
        raise ValueError(f"{len(encoded):,} bytes where {limit:,} are the limit")
    if decoder := _decoder(kind):
        decoder.decode(encoded)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any] | None:  # noqa: ANN401 - an annotation
    """Return the JSON decoder of the type `kind`, or None if the type has no JSON form."""
    try:
        return msgspec.json.Decoder(kind)
    except TypeError:
        return None


def _instance(answer: object, kind: type) -> object:
    """Return the answer if it is an instance of the class or has the members of the protocol."""
    if "__call__" in vars(kind) and Protocol in kind.__bases__:
        return _called(answer, None)
    if inspect.isroutine(answer):
        raise TypeError(
            f"the function {answer.__name__} where {kind.__name__} is expected: "
            f"decorate it with @{kind.__name__.lower()}, or make a {kind.__name__} of it"
        )
    if isinstance(answer, type):
        raise TypeError(
            f"the class {answer.__name__} where a {kind.__name__} made of it is expected"
        )
    if Protocol not in kind.__bases__:
        lacking: list[str] = []
        fits = isinstance(answer, kind)
    else:
        lacking = [name for name in _members(kind) if not _has(answer, kind, name)]
        fits = not lacking
    if not fits:
        without = f" without {', '.join(lacking)}" if lacking else ""
        raise TypeError(f"{_name(answer)}{without} where a {kind.__name__} is expected")
    return answer


def _members(protocol: type) -> Iterator[str]:
    """Yield the public names that a protocol requires, in source order."""
    for name in (*inspect.get_annotations(protocol), *vars(protocol)):
        if not name.startswith("_"):
            yield name


def _has(answer: object, protocol: type, name: str) -> bool:
    found = getattr(answer, name, None)
    if callable(vars(protocol).get(name)):
        return callable(found)
    is_text = inspect.get_annotations(protocol).get(name) in (str, "str")
    return isinstance(found, str) if is_text else hasattr(answer, name)


def _named(kind: object, word: str = "of") -> str:
    """Return a phrase that names the type `kind` in an error message: " of Tool" for `Tool`.

    `word` is the preposition. The phrase is "" if any type is valid.
    """
    if get_origin(kind) is Callable:
        return f" {word} a function"
    return f" {word} {kind.__name__}" if isinstance(kind, type) and kind is not object else ""


def _example(kind: object) -> str:
    """Return code that makes a small struct with the required fields; "" for any other type."""
    if kind is Tool:
        return "a function with @tool"
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return ""
    needed = [each for each in msgspec.structs.fields(kind) if each.required]
    if not 0 < len(needed) <= EXAMPLE_FIELDS:
        return ""
    return f"{kind.__name__}({', '.join(f'{each.name}={_value(each.type)}' for each in needed)})"


def _value(kind: object) -> str:
    if get_origin(kind) is Literal:
        return " | ".join(f'"{each}"' for each in get_args(kind))
    return '"..."' if kind is str else "..."


def _name(value: object) -> str:
    return type(value).__name__


def _name_of(kind: type) -> str:
    return " or ".join([each.__name__ for each in get_args(kind)] or [kind.__name__])
