"""A run without snapshots."""

from contextlib import AbstractAsyncContextManager, nullcontext

from pegboard.snapshots import Trail


class Untracked(Trail):
    """A trail that follows nothing: no plugin keeps snapshots."""

    def calling(self, effect: str) -> AbstractAsyncContextManager[None]:  # noqa: ARG002 - unheard
        """Return a block that does nothing."""
        return nullcontext()
