"""A disk that loses power: what it holds for sure, and what it may or may not hold.

Writes since the last sync of a file may be kept, dropped, reordered or torn at any sector. A new name, a renaming or a
deletion may be lost until its folder is synced.
"""

import hashlib
import os
import tempfile
from pathlib import Path

SECTOR = 512


class Platter:
    """Follows the operations on some files. Names are paths; a file keeps its content under whatever name."""

    def __init__(self):
        self._names, self._pending_names = {}, []
        self._files = {}
        """Of each file what is durable, and the operations since: (offset, data), or (size, None) to cut it."""
        self._now = {}

    def do(self, what, path, *given):
        """Follow an operation: create, write, cut, sync, rename, delete, sync folder."""
        getattr(self, f"_{what.replace(' ', '_')}")(path, *given)

    def _create(self, path):
        if path not in self._now:
            number = len(self._files)
            self._files[number], self._now[path] = (b"", []), number
            self._pending_names.append((path, None, number))

    def _write(self, path, offset, data):
        self._files[self._now[path]][1].append((offset, data))

    def _cut(self, path, size):
        self._files[self._now[path]][1].append((size, None))

    def _sync(self, path):
        durable, pending = self._files[self._now[path]]
        self._files[self._now[path]] = _applied(durable, pending), []

    def _rename(self, path, to):
        number = self._now[to] = self._now.pop(path)
        self._pending_names.append((to, path, number))

    def _delete(self, path):
        self._now.pop(path, None)
        self._pending_names.append((None, path, None))

    def _sync_folder(self, folder):
        rest = []
        for to, path, number in self._pending_names:
            if os.path.dirname(to or path) == folder:  # noqa: PTH120 - texts, and many of them
                _renamed(self._names, to, path, number)
            else:
                rest.append((to, path, number))
        self._pending_names = rest

    def after_power_cut(self, draw):
        """Return a content for each name that there may be now."""
        names, keep = dict(self._names), draw.choice([0.0, 0.5, 1.0])
        for to, path, number in self._pending_names:
            if draw.random() < keep:
                _renamed(names, to, path, number)
        keep = draw.choice([0.0, 0.5, 0.9, 1.0])
        return {path: self._content(number, keep, draw) for path, number in names.items()}

    def _content(self, number, keep, draw):
        durable, pending = self._files[number]
        kept = [_torn(each, draw) if draw.random() < 0.2 else each for each in pending if draw.random() < keep]
        if draw.random() < 0.3:
            draw.shuffle(kept)
        return _applied(durable, kept)


def _renamed(names, to, path, number):
    if path is not None:
        names.pop(path, None)
    if to is not None:
        names[to] = number


def _torn(operation, draw):
    offset, data = operation
    if data is None or len(data) <= SECTOR:
        return operation
    first = SECTOR * draw.randrange(len(data) // SECTOR + 1)
    return (offset, data[:first]) if draw.random() < 0.5 else (offset + first, data[first:])


def _applied(durable, pending):
    if not pending:
        return durable
    content = bytearray(durable)
    for offset, data in pending:
        if data is None:
            del content[offset:]
        else:
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data
    return bytes(content)


def scratch():
    """Return a folder that is deleted afterwards, in memory where there is one: nothing here depends on a disk."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


def digest(contents):
    """Return a hash of files and their names."""
    found = hashlib.blake2b(digest_size=16)
    for name, content in sorted(contents.items()):
        found.update(f"{name} {len(content)} ".encode() + content)
    return found.digest()


def lay_out(contents, folder):
    """Write files, whose names begin with the folder where they were made, into another folder."""
    for name, content in contents.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Cut:
    """A recorded workload: operations on files, and between them what was promised from then on."""

    def __init__(self, root):
        self.root, self.steps = f"{root}/", []

    def note(self, what, path, *given):
        """Record an operation; names are kept without the folder in which everything happens."""
        path, *given = (
            each.removeprefix(self.root).removeprefix(self.root[:-1]) if isinstance(each, str) else each
            for each in (path, *given)
        )
        self.steps.append((what, path, *given))

    def promise(self, check):
        """Record that `check(folder)` must find nothing wrong after any power cut from now on."""
        self.steps.append((check,))

    def power_cuts(self, count, draw):
        """Yield contents of the disk after power cuts at random moments, and the last promise before each."""
        places = sorted(draw.randrange(len(self.steps)) for _ in range(count))
        platter, promise, step = Platter(), None, 0
        for place in places:
            while step <= place:
                what, *given = self.steps[step]
                if callable(what):
                    promise = what
                else:
                    platter.do(what, *given)
                step += 1
            yield platter.after_power_cut(draw), promise, place
