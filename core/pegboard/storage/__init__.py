"""Storage: sessions, messages, parts, events, approvals and tool state, in a database."""

from pathlib import Path

from pegboard.contract.changes import AddText as AddText
from pegboard.contract.changes import Change as Change
from pegboard.contract.changes import ChangeSession as ChangeSession
from pegboard.contract.changes import CreateSession as CreateSession
from pegboard.contract.changes import DropApproval as DropApproval
from pegboard.contract.changes import DropMessage as DropMessage
from pegboard.contract.changes import DropPart as DropPart
from pegboard.contract.changes import DropSession as DropSession
from pegboard.contract.changes import Emit as Emit
from pegboard.contract.changes import PutApproval as PutApproval
from pegboard.contract.changes import PutMessage as PutMessage
from pegboard.contract.changes import PutPart as PutPart
from pegboard.contract.changes import PutPermissionRequest as PutPermissionRequest
from pegboard.contract.changes import PutProject as PutProject
from pegboard.contract.changes import PutState as PutState
from pegboard.contract.changes import PutTodos as PutTodos
from pegboard.contract.changes import SettlePermissionRequest as SettlePermissionRequest
from pegboard.contract.changes import Tell as Tell
from pegboard.contract.changes import changed as changed
from pegboard.contract.snapshots import Left as Left
from pegboard.contract.snapshots import Restored as Restored
from pegboard.contract.snapshots import Snapshots as Snapshots
from pegboard.contract.snapshots import StagedWay as StagedWay
from pegboard.contract.snapshots import Way as Way
from pegboard.contract.snapshots import Writing as Writing
from pegboard.contract.storage import Fence as Fence
from pegboard.contract.storage import Hit as Hit
from pegboard.contract.storage import LastIds as LastIds
from pegboard.contract.storage import OnCommit as OnCommit
from pegboard.contract.storage import OpenStorage as OpenStorage
from pegboard.contract.storage import SessionSize as SessionSize
from pegboard.contract.storage import Storage as Storage
from pegboard.ids import IdSource


async def open_storage(
    url: str | Path, *, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """The SQLite database at a path or `sqlite:///path`, recovered from earlier crashes.

    `on_commit` hears every commit, as `OnCommit` says.

    :raises StorageError: when it cannot be opened.
    """
    # Only who opens a database pays for loading SQLite.
    from pegboard.storage.sqlite import SqliteStorage

    return await SqliteStorage.open(_path(url), ids=ids, on_commit=on_commit)


def _path(url: str | Path) -> Path:
    return Path(url.removeprefix("sqlite://")) if isinstance(url, str) else url
