"""The store of installed bundles: their copies, and the digests that the user trusts."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pegboard.app import UserFolders
from pegboard.processes import find_program
from pegboard_plugins.shared.frontend.bundlemanifest import Bundle, BundleError, read_bundle
from pegboard_plugins.shared.frontend.marketplace import listed_source
from pegboard_plugins.shared.frontend.projectbundles import active_bundles

MOST_FILES = 5000
MOST_BYTES = 64 << 20
CLONE_WITHIN_S = 300
_SCHEMES = ("https://", "http://", "ssh://", "git@", "file://")
_CACHE: dict[Path, tuple[tuple[object, ...], str]] = {}
"""The states of each folder's files, and the digest computed from them."""


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """An installed bundle, with its source and the digest of the files that the user trusts.

    `market` is the marketplace in which `source` is a name, or "" if `source` is a folder or URL.
    """

    source: str
    market: str = ""
    revision: str = ""
    trusted: str = ""


class _Index(msgspec.Struct, frozen=True, kw_only=True):
    bundles: dict[str, Installed] = {}


class BundleStore:
    """A user's installed bundles: folders of skills, agents and servers; all methods block."""

    def __init__(self, places: UserFolders) -> None:
        self._index = places.bundles
        self._root = places.data / "bundles"
        self._storage = places.data / "bundle-data"

    def installed(self) -> dict[str, Installed]:
        """Return the installed bundles by name, sorted.

        :raises BundleError: when the index file cannot be read.
        """
        try:
            content = self._index.read_bytes()
            found = msgspec.json.decode(content, type=_Index).bundles
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            raise BundleError(f"{self._index} cannot be read ({error}); remove it") from error
        return dict(sorted(found.items()))

    def bundle(self, name: str) -> Bundle:
        """Parse an installed bundle.

        :raises BundleError: when its folder is not a usable bundle.
        """
        return read_bundle(self._root / name, self._storage / name)

    def digest(self, name: str) -> str:
        """Return the digest of a bundle's current files."""
        return digest_of(self._root / name)

    def is_trusted(self, name: str, entry: Installed) -> bool:
        """Return whether the bundle's files are still those that the user trusted."""
        return bool(entry.trusted) and entry.trusted == self.digest(name)

    def add(self, source: str, *, market: str = "") -> Bundle:
        """Install the bundle from a folder or a git repository; it is not trusted yet.

        With `market`, the folder or repository of a marketplace, `source` is a name in this
        marketplace. The bundle replaces an installed bundle of the same name; the data folder
        stays.

        :raises BundleError: when the source has no usable bundle.
        """
        bundle, revision = copy_bundle(source, self._root, market=market)
        (self._storage / bundle.name).mkdir(parents=True, exist_ok=True, mode=0o700)
        where, listed = (source, _whole(market)) if market else (_whole(source), "")
        entry = Installed(source=where, market=listed, revision=revision)
        self._write({**self.installed(), bundle.name: entry})
        return self.bundle(bundle.name)

    def trust(self, name: str, digest: str) -> None:
        """Record that the user trusts the bundle with this digest."""
        found = self.installed()
        entry = msgspec.structs.replace(found[name], trusted=digest)
        self._write({**found, name: entry})

    def remove(self, name: str) -> None:
        """Remove a bundle and its data folder."""
        found = self.installed()
        del found[name]
        self._write(found)
        for folder in (self._root / name, self._storage / name):
            shutil.rmtree(folder, ignore_errors=True)

    def _write(self, bundles: dict[str, Installed]) -> None:
        self._index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._index.with_suffix(".new")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(msgspec.json.format(msgspec.json.encode(_Index(bundles=bundles)), indent=2))
        temporary.replace(self._index)


class Bundles(msgspec.Struct, frozen=True, kw_only=True):
    """The bundles to load; `problems` has a line for each bundle that is not loaded."""

    active: tuple[Bundle, ...] = ()
    problems: tuple[str, ...] = ()


def copy_bundle(source: str, root: Path, *, market: str = "") -> tuple[Bundle, str]:
    """Copy a bundle to the folder of its name below `root`; return the bundle and its git revision.

    `source` and `market` are those of `BundleStore.add`.

    :raises BundleError: when the source has no usable bundle.
    """
    fetched = _fetched_from(market, source) if market else _fetched(source)
    with fetched as (folder, revision):
        bundle = read_bundle(folder, root)
        digest_of(folder)
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = root / bundle.name
        if target.is_symlink():
            raise BundleError(f"{target} is a link; remove it first")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target, ignore=shutil.ignore_patterns(".git"))
    return bundle, revision


def read_bundles(places: UserFolders, worktree: Path, trusted: Mapping[Path, bytes]) -> Bundles:
    """Return the user's bundles, then those of the project at `worktree`; blocks.

    `trusted` are the files of the project that the user trusts, as in the hook `config_load`.
    """
    store = BundleStore(places)
    active: list[Bundle] = []
    problems: list[str] = []
    taken: set[str] = set()
    try:
        for name, entry in store.installed().items():
            taken.add(name)
            if store.is_trusted(name, entry):
                active.append(store.bundle(name))
            else:
                advice = f"`pegboard plugins bundle trust {name}` shows and trusts it"
                problems.append(f"the bundle {name} is not trusted as it is; {advice}")
    except BundleError as error:
        problems.append(str(error))
    own, others = active_bundles(places, worktree, trusted, taken=taken)
    return Bundles(active=(*active, *own), problems=(*problems, *others))


def digest_of(folder: Path) -> str:
    """Return a digest of all files of a folder: the names, contents and executable bits.

    :raises BundleError: when the folder has too many files, or a file cannot be read.
    """
    files = [path for path in sorted(folder.rglob("*")) if ".git" not in path.parts]
    files = [path for path in files if path.is_file()]
    try:
        facts = [path.stat() for path in files]
        states = tuple(
            (str(path), each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns)
            for path, each in zip(files, facts, strict=True)
        )
        known = _CACHE.get(folder)
        if known is not None and known[0] == states:
            return known[1]
        if len(files) > MOST_FILES or sum(each.st_size for each in facts) > MOST_BYTES:
            raise BundleError(f"{folder} has more than {MOST_FILES} files or 64 MiB")
        whole = hashlib.sha256()
        for path, each in zip(files, facts, strict=True):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            line = f"{path.relative_to(folder)}\0{digest}\0{each.st_mode & 0o111}\n"
            whole.update(os.fsencode(line))
    except OSError as error:
        raise BundleError(f"{folder} cannot be read: {error}") from error
    _CACHE[folder] = states, whole.hexdigest()
    return whole.hexdigest()


def _whole(source: str) -> str:
    """Return a source that does not depend on the working directory: a URL or an absolute path."""
    return source if source.startswith(_SCHEMES) else str(Path(source).expanduser().resolve())


@contextmanager
def _fetched_from(market: str, name: str) -> Iterator[tuple[Path, str]]:
    """Yield the folder and git revision of a marketplace's bundle; clone repositories if needed."""
    with _fetched(market) as (folder, revision):
        source = listed_source(folder, name)
        if isinstance(source, Path):
            yield source, revision
            return
        with _fetched(source) as found:
            yield found


@contextmanager
def _fetched(source: str) -> Iterator[tuple[Path, str]]:
    """Yield a bundle's folder and git revision within the context; clone `source` if a URL."""
    if not source.startswith(_SCHEMES):
        folder = Path(source).expanduser()
        if not folder.is_dir():
            raise BundleError(f"{source} is neither a folder nor the URL of a git repository")
        yield folder, ""
        return
    url, _, revision = source.partition("#")
    with tempfile.TemporaryDirectory(prefix="pegboard-bundle-") as place:
        target = Path(place, "bundle")
        branch = ["--branch", revision] if revision else []
        _git("clone", "--quiet", "--depth", "1", *branch, "--", url, str(target))
        yield target, _git("-C", str(target), "rev-parse", "HEAD")


def _git(*words: str) -> str:
    """Run git without hooks, submodules and prompts, and return the output of git."""
    git = find_program("git", os.environ, root=Path.cwd())
    if git is None:
        raise BundleError("git is needed for a URL, and is not installed")
    safe = ("-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never")
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            [git, *safe, *words],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=CLONE_WITHIN_S,
        )
    except subprocess.TimeoutExpired as error:
        raise BundleError(f"git took longer than {CLONE_WITHIN_S} s: {' '.join(words)}") from error
    if done.returncode != 0:
        raise BundleError(f"git could not fetch it: {done.stderr.strip()}")
    return done.stdout.strip()
