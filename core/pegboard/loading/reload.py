"""The code of a project while its App is open: looked at before each prompt, and loaded anew.

What was trusted goes on until the change is trusted, too: nobody can take a policy away by
editing it.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pegboard.errors import PegboardError, TrustError
from pegboard.loading.register import Register
from pegboard.schema.config import Config
from pegboard.trust.decisions import Decision, TrustStore


@dataclass(slots=True, kw_only=True)
class Reload:
    """Keeps the plugins of a project's files as they are trusted at this moment.

    `trust` is what was said for the App alone: True holds for what was there when it was opened,
    with False no code is run. Else what the user has said since counts, and trust that was taken
    back ends it. `seen` is the newest decision.
    """

    register: Register
    config: Config
    directory: Path
    store: TrustStore
    lock: str | None
    trust: bool | Decision | None
    seen: Decision
    _loaded: Decision = field(init=False)
    _looking: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._loaded = self.seen

    @property
    def untrusted(self) -> tuple[Path, ...]:
        """The files that nobody has trusted as they are now."""
        if self.seen.trusted:
            return ()
        old = self._loaded.files if self._loaded.trusted else {}
        return tuple(path for path, content in self.seen.files.items() if old.get(path) != content)

    async def look(self) -> None:
        """Load what has come to be trusted since; what has changed and is not, is told once."""
        if self.trust is False:
            return
        async with self._looking:
            before = self.seen
            found = await asyncio.to_thread(self._decide)
            if (found.trusted, found.key) == (before.trusted, before.key):
                return
            self.seen = found
            is_same = found.key == self._loaded.key
            if found.trusted and not (is_same and self._loaded.trusted):
                await self._take(found)
            elif not found.trusted and is_same and self._loaded.trusted:
                await self._take(found)  # trust was taken back
            elif not found.trusted:
                text = f"{found.reason}: `pegboard trust allow` has it used"
                kept = "; until then what was trusted before goes on"
                self._tell(text + (kept if self._loaded.trusted and self._loaded.files else ""))

    def _decide(self) -> Decision:
        code = {file.path for file in self._loaded.code}
        decide = partial(
            self.store.decide,
            directory=self.directory,
            worktree=self._loaded.root,
            config_files=[path for path in self._loaded.files if path not in code],
            plugin_paths=self._loaded.named,
            lock=Path(self.lock) if self.lock else None,
        )
        try:
            found = decide()
            holds = self.trust is not None and self._loaded.trusted
            return decide(answer=self._loaded) if holds and not found.trusted else found
        except TrustError:
            return self.seen  # the lock file is being written

    async def _take(self, decision: Decision) -> None:
        try:
            for problem in await self.register.reload(decision, self.config):
                self._tell(problem)
        except PegboardError as error:
            self._tell(f"the project's code is not loaded anew: {error}")
            return
        self._loaded = decision

    def _tell(self, text: str) -> None:
        self.register.hooks.tell("project", "reload", text)
