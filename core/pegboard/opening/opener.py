"""A value that is opened by `await` or by `async with`."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

_T = TypeVar("_T", bound=AbstractAsyncContextManager[Any])


class Opener(Generic[_T]):
    """An awaitable that opens a value, and a context manager that also closes this value."""

    def __init__(self, opened: Callable[[], Awaitable[_T]]) -> None:
        self._opened = opened

    def __await__(self) -> Generator[Any, Any, _T]:
        return self._opened().__await__()

    async def __aenter__(self) -> _T:
        self._entered = await self
        return self._entered

    async def __aexit__(self, *_: object) -> None:
        await self._entered.__aexit__(None, None, None)
