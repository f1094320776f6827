"""The Python files beside a study that a module is made of, and the import of such a module."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from omg_cmdp.documents import FileError

OURS = __name__.partition(".")[0]


def module_sources(module: str, folder: Path) -> list[Path]:
    """Return the files in `folder` that `module` is made of: its own first, then those that it imports, and so on.

    There are none for a module that lies elsewhere.
    """
    found: dict[Path, None] = {}
    pending = [module] if _files(module, folder)[:1] else []
    while pending:
        for file in _files(pending.pop(0), folder):
            if file not in found:
                found[file] = None
                pending += _imports(file.read_bytes(), file.relative_to(folder).parent.parts)
    return list(found)


def _files(name: str, folder: Path) -> list[Path]:
    """Return the file of a module and those of the packages around it; nothing if it has none."""
    parts = name.split(".")
    place = folder.joinpath(*parts)
    own = [file for file in (place.with_name(f"{parts[-1]}.py"), place / "__init__.py") if file.is_file()]
    if not own or parts[0] == OURS:
        return []
    around = [folder.joinpath(*parts[:end], "__init__.py") for end in range(1, len(parts))]
    return [own[-1], *(file for file in around if file.is_file())]


@functools.lru_cache(maxsize=256)
def _imports(source: bytes, package: tuple[str, ...]) -> list[str]:
    """Return all names that a module of `package` imports, some of which are modules; none if it is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names += [origin, *(f"{origin}.{alias.name}".lstrip(".") for alias in node.names)]
    return [name for name in names if name and "*" not in name]


def digest(files: list[Path]) -> str:
    """Return a digest of the contents of `files`, in their order; one that is gone counts too."""
    contents = (file.read_bytes() if file.is_file() else b"gone" for file in files)
    return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).hexdigest()


_loaded: dict[str, tuple[Path, str, list[Path]]] = {}
"""The modules that were imported from beside a study: its folder, the digest of their files, and these."""


def import_beside(module: str, folder: Path) -> ModuleType:
    """Import a module: the one in `folder` if there is one, as it is now, else the one that Python finds."""
    files = module_sources(module, folder)
    if not files:
        return importlib.import_module(module)
    _forget_all_but(folder)
    if module not in _loaded:
        with _searched_first(folder):
            importlib.import_module(module)
        _loaded[module] = folder, digest(files), files
    made = sys.modules[module]
    origin = getattr(made, "__file__", None)
    if origin is None or Path(origin).resolve() != files[0]:
        del _loaded[module]
        raise FileError(f"{files[0]} must have another name: {module!r} is the module {origin or 'of Python itself'}")
    return made


def _forget_all_but(folder: Path) -> None:
    """Forget what came from files that have changed since, or from another study, which may use the same names."""
    old = {name for name, (place, then, files) in _loaded.items() if place != folder or digest(files) != then}
    files = {file for name in old for file in _loaded.pop(name)[2]}
    for name, module in list(sys.modules.items()) if files else []:
        origin = getattr(module, "__file__", None)
        if isinstance(origin, str) and Path(origin).resolve() in files:
            del sys.modules[name]


@contextlib.contextmanager
def _searched_first(folder: Path) -> Iterator[None]:
    """Search `folder` before all others, then, for what is imported late, after all others. Write nothing there."""
    place, writes = str(folder), sys.dont_write_bytecode
    known = place in sys.path
    sys.path.insert(0, place)
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(place)
        if not known:
            sys.path.append(place)
