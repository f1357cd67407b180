"""The import of plugin files from their recorded content, and of one plugin file by another."""

import builtins
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from pegboard.trust.projectcode import CodeFile

_PACKAGE = "__init__.py"


class Imports:
    """The modules of one App's plugin files, each with a unique name.

    A file imports installed modules first. If there is none, it imports the file next to it, as
    `helper` or `.helper`, but only known files and only their recorded content. No cached byte code
    is read or written. No folder is added to `sys.path`, so a `json.py` next to a tool hides no
    module.
    """

    def __init__(self) -> None:
        self._files: dict[Path, CodeFile] = {}
        self._modules: dict[Path, ModuleType] = {}

    def add(self, files: Iterable[CodeFile]) -> None:
        """Add files that may be imported; a path that is known keeps its recorded content."""
        for file in files:
            self._files.setdefault(file.path, file)

    def load(self, file: CodeFile) -> ModuleType:
        """Return the module of a file; the first call runs the file."""
        if (known := self._modules.get(file.path)) is not None:
            return known
        stem = file.path.parent.name if file.path.name == _PACKAGE else file.path.stem
        module = ModuleType(f"pegboard_file_{os.urandom(8).hex()}_{stem}")
        module.__file__ = str(file.path)
        own = _Importer(self, file)
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": own}
        code = compile(file.content, str(file.path), "exec", dont_inherit=True)
        self._modules[file.path] = module
        sys.modules[module.__name__] = module  # dataclasses and pydantic look their module up there
        try:
            exec(code, module.__dict__)  # noqa: S102 - this is what a plugin is; trust has agreed
        except BaseException:
            self._forget(file.path)
            raise
        return module

    def below(self, folder: Path, name: str) -> ModuleType | None:
        """Return the module or package with this name in a folder, or None if it is unknown."""
        for path in (folder / f"{name}.py", folder / name / _PACKAGE):
            if path in self._files:
                return self.load(self._files[path])
        return None

    def package(self, folder: Path) -> ModuleType:
        """Return the package of a folder; a folder without `__init__.py` gives an empty package."""
        file = self._files.get(folder / _PACKAGE)
        return self.load(file) if file is not None else ModuleType(folder.name)

    def contents_below(self, folder: Path) -> Iterator[bytes]:
        """Yield the content of all known files below a folder."""
        for path, file in self._files.items():
            if path.is_relative_to(folder):
                yield file.content

    def forget(self, files: Iterable[CodeFile]) -> None:
        """Remove files, so that `add` can record their new content."""
        for file in files:
            self._files.pop(file.path, None)
            if file.path in self._modules:
                self._forget(file.path)

    def close(self) -> None:
        """Remove all modules of plugin files from `sys.modules`, so that they can be freed."""
        for path in tuple(self._modules):
            self._forget(path)

    def _forget(self, path: Path) -> None:
        sys.modules.pop(self._modules.pop(path).__name__, None)


class _Importer:
    """The function `__import__` for the code of one plugin file."""

    def __init__(self, imports: Imports, file: CodeFile) -> None:
        self._imports = imports
        self._file = file

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - Python's own
        locals: Mapping[str, object] | None = None,  # noqa: A002 - Python's own
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import like Python; import a module that Python does not find from the file's folder."""
        if level:
            return self._find(self._folder(level), name, fromlist or ())
        try:
            return builtins.__import__(name, globals, locals, fromlist or (), 0)
        except ModuleNotFoundError as error:
            top = name.partition(".")[0]
            if error.name != top or self._imports.below(self._file.root, top) is None:
                raise
        return self._find(self._file.root, name, fromlist or (), is_absolute=True)

    def _folder(self, level: int) -> Path:
        folder = self._file.path.parents[level - 1]
        if not folder.is_relative_to(self._file.root):
            raise ImportError(f"a relative import leads out of {self._file.root}")
        return folder

    def _find(
        self, folder: Path, name: str, fromlist: Sequence[str], *, is_absolute: bool = False
    ) -> ModuleType:
        first = module = None if name else self._imports.package(folder)
        for part in name.split(".") if name else ():
            below = self._imports.below(folder, part)
            if below is None:
                text = f"No module named {part!r} in {folder}"
                raise ModuleNotFoundError(text, name=part, path=str(folder))
            if module is not None:
                setattr(module, part, below)
            first, module, folder = first or below, below, folder / part
        assert first is not None
        assert module is not None
        for wanted in fromlist:
            if not hasattr(module, wanted) and (inner := self._imports.below(folder, wanted)):
                setattr(module, wanted, inner)
        return first if is_absolute and not fromlist else module
