"""The files of a study, none of which is ever half written, or taken for another.

    study.json                  the resolved configuration, versions, commit, date
    log/RUN-000000.parquet      parts of a run's log: pandas.read_parquet("DIR/log") reads all runs
    state/RUN.npz               the last checkpoint of a run
    state/RUN.lock              held by the process that plays the run; study.lock, by one that changes study.json
    runs/RUN.json               the result of a finished run, or the error of one that failed

A file is written under a name of its own, `.FILE.tmp-...`, and then moved to its place in one step. A run writes a part
of its log, then the checkpoint that says which parts count, and at the end its result. After a crash, parts that the
checkpoint does not count are deleted, and their episodes are played again.

Results and checkpoints name their run and its settings, and hold a digest of themselves and of each part of the log.
A file that is missing, was changed, or belongs elsewhere is an error that says which file it is and what to do.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock
from numpy.typing import NDArray

from omg_cmdp.documents import FileError
from omg_cmdp.persistence import read_arrays, whole_file, write_arrays
from omg_cmdp.validation import UNEXPECTED
from omg_lab.studies.outside.folder import told

FORMAT = 5
"""The version of the files; a study of another version is refused."""

STUDY, RESULT, CHECKPOINT = "study", "result of a run", "checkpoint of a run"

LARGEST = 2**31
"""The most bytes of a file that is read; a sparse file may claim any number."""

SECONDS_BETWEEN_TRIES = 0.2
"""The wait between attempts to lock a run that another process is playing."""


class UnwritableError(FileError):
    """The files of a study cannot be written, so that no run of it can go on."""


class StudyStore:
    """The files of a study."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        try:
            os.fspath(self.directory).encode()
        except UnicodeEncodeError:
            raise FileError(
                f"the folder of a study must have a name in UTF-8, got {os.fsencode(directory)!r}"
            ) from None
        self.log, self.state, self.runs = (self.directory / name for name in ("log", "state", "runs"))

    def create(self) -> None:
        """Make the directories."""
        for folder in (self.log, self.state, self.runs):
            with _writing(folder):
                folder.mkdir(parents=True, exist_ok=True)

    def write_study(self, content: Mapping[str, Any]) -> None:
        """Write the configuration of the study and its provenance; what a crash left half written is deleted."""
        path = self.directory / "study.json"
        with _writing(path):
            for left in self.directory.glob(f".{path.name}.tmp-*"):
                left.unlink()
            _write_json(path, content, STUDY)

    def study(self) -> dict[str, Any] | None:
        """Return the configuration of the study and its provenance; None if there is no study."""
        path = self.directory / "study.json"
        with reading(path, "restore it, or run the study in another folder"):
            found = _read_json(path, STUDY) if path.exists() else None
            if found is not None:
                check_form("it", found, {"configuration": dict})
                made = {name: each for name, each in found.items() if name != "configuration"}
                check_form("it", {"versions": {}, **made}, {str: (str, dict), "versions": {str: str}})
            return found

    # The result of a run.

    def result(self, run: str) -> dict[str, Any] | None:
        """Return the result of a run; None if there is none yet."""
        path = self.runs / f"{run}.json"
        with self.reading_result(run):
            found = _read_json(path, RESULT) if path.exists() else None
            if found is not None:
                check_form("it", found, {"run": str, "status": str})
                if found["run"] != run:
                    raise ValueError(f"it is the result of {found['run']}")
            return found

    def reading_result(self, run: str) -> contextlib.AbstractContextManager[None]:
        """Turn what is wrong with a result into an error about its file."""
        return reading(self.runs / f"{run}.json", "delete it, and `omg-lab run` makes it again")

    def results(self) -> Iterator[dict[str, Any]]:
        """Yield all results, in the order of their names."""
        yield from filter(None, map(self.result, sorted(path.stem for path in self.runs.glob("*.json"))))

    def is_finished(self, run: str) -> bool:
        """Return whether a run has been played to its end."""
        result = self.result(run)
        return result is not None and result["status"] == "finished"

    def write_result(self, run: str, result: Mapping[str, Any]) -> None:
        """Write the result of a run."""
        path = self.runs / f"{run}.json"
        with _writing(path):
            _write_json(path, {"run": run, **result}, RESULT)

    # Its log and checkpoint.

    def part(self, run: str, number: int) -> Path:
        """Return the path of a part of the log."""
        return self.log / f"{run}-{number:06d}.parquet"

    def parts(self, run: str) -> list[Path]:
        """Return the paths of the existing parts of a run's log, in order."""
        return sorted(path for path in self.log.glob(f"{run}-*.parquet") if path.stem[:-7] == run)

    def write_part(self, run: str, number: int, content: bytes) -> str:
        """Store a part of the log, and return its digest."""
        path = self.part(run, number)
        with _writing(path), whole_file(path) as temporary:
            temporary.write_bytes(content)
        return hashlib.sha256(content).hexdigest()

    def read_part(self, run: str, number: int, digest: str) -> bytes:
        """Return a part of the log, which must be the one that was written."""
        with self.reading_part(run, number):
            content = _content(self.part(run, number))
            if hashlib.sha256(content).hexdigest() != digest:
                raise ValueError("it was changed since it was written")
            return content

    def reading_part(self, run: str, number: int) -> contextlib.AbstractContextManager[None]:
        """Turn what is wrong with a part of the log into an error about its file."""
        advice = f"restore it; or delete {run}.json in runs/ and {run}.npz in state/, and run the study again"
        return reading(self.part(run, number), advice)

    def write_checkpoint(self, run: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the checkpoint."""
        path = self.state / f"{run}.npz"
        with _writing(path):
            write_arrays(path, arrays, kind=CHECKPOINT, version=FORMAT)

    @contextlib.contextmanager
    def checkpoint(self, run: str) -> Iterator[dict[str, NDArray[Any]] | None]:
        """Yield the last checkpoint, None if there is none; what does not fit into it is an error about its file."""
        path = self.state / f"{run}.npz"
        with reading(path, "delete it, and the run is played from its beginning"):
            if path.exists():
                _check_regular(path)
            yield read_arrays(path, kind=CHECKPOINT, version=FORMAT) if path.exists() else None

    def saved_at(self, run: str) -> int:
        """Return when the last checkpoint was written, in nanoseconds; 0 if there is none."""
        path = self.state / f"{run}.npz"
        return path.stat().st_mtime_ns if path.exists() else 0

    def forget_after(self, run: str, parts: int) -> None:
        """Delete all but the first `parts` parts of the log, and what a crash may have left half written."""
        endings = {self.log: "-??????.parquet", self.state: ".npz", self.runs: ".json"}
        left = [path for folder, ending in endings.items() for path in folder.glob(f".{run}{ending}.tmp-*")]
        for path in [*self.parts(run)[parts:], *left]:
            with _writing(path):
                path.unlink()

    @contextlib.contextmanager
    def owned(self, run: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Lock a run, so that no other process plays it meanwhile. The lock of a process that dies is released.

        While another process has it, `waiting` is called several times a second.
        """
        path = self.state / f"{run}.lock"
        lock = filelock.FileLock(path, timeout=SECONDS_BETWEEN_TRIES)
        while not lock.is_locked:
            # In this order: a time-out is an OSError too, and no fault of the disk.
            with _writing(path), contextlib.suppress(filelock.Timeout):
                lock.acquire()
                break
            waiting()
        try:
            yield
        finally:
            lock.release()


def _write_json(path: Path, content: Mapping[str, Any], kind: str) -> None:
    """Write `content` to `path`, with its kind and a digest of it; NaN and infinity become null."""
    plain = {
        name: None if isinstance(each, float) and not math.isfinite(each) else each for name, each in content.items()
    }
    whole = {"format": f"{kind} {FORMAT}", **plain, "digest": digest_of(plain)}
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_json(path: Path, kind: str) -> dict[str, Any]:
    """Return the content of a file that was written as a `kind` of this format; refuse any other."""
    refusal = f"`path` must be a {kind} of format {FORMAT}, got {path}"
    try:
        content: dict[str, Any] = json.loads(_content(path).decode())
        found, digest = content.pop("format"), content.pop("digest")
    except (*UNEXPECTED, ValueError) as error:
        raise ValueError(refusal) from error
    if found != f"{kind} {FORMAT}":
        raise ValueError(refusal)
    if digest != digest_of(content):
        raise ValueError(f"`path` must be as it was written, got {path}, which was changed since")
    return content


def digest_of(content: Any) -> str:
    """Return a digest of what JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "make room, or choose another folder with --out; the same command continues"
        raise UnwritableError(f"{path} cannot be written: {error.strerror or error}; {advice}") from error


@contextlib.contextmanager
def reading(path: Path, advice: str) -> Iterator[None]:
    """Turn what is wrong with a file, or with what it holds, into an error that names it, and what to do."""
    try:
        yield
    except FileError:  # it names a file already
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}; {advice}") from error
    except (*UNEXPECTED, ValueError) as error:
        raise FileError(f"{path}: {told(error)}; {advice}") from error


def check_form(place: str, value: Any, form: Any) -> None:
    """Refuse what JSON holds unless it has a form: types, [form] for a list, {key: form} for a table, str for any key.

    >>> check_form("it", {"names": ["a"], "seed": 1}, {"names": [str], "seed": int})
    >>> check_form("it", {"names": "a"}, {"names": [str]})
    Traceback (most recent call last):
    ValueError: 'names' must be of another type, got 'a'
    """
    kind = type(form) if isinstance(form, (list, dict)) else form
    # True is an integer for Python, and for no field of ours; nor is one that no float can hold.
    odd = isinstance(value, int) and (kind is not bool if isinstance(value, bool) else value.bit_length() > 1023)
    if not isinstance(value, kind) or odd:
        raise ValueError(f"{place!r} must be of another type, got {value!r:.40}")
    for each in value if isinstance(form, list) else ():
        check_form(place, each, form[0])
    for key, inner in form.items() if isinstance(form, dict) else ():
        for name in value if key is str else (key,):
            if name not in value:
                raise ValueError(f"{place!r} must have {name!r}, got {sorted(value, key=str)!r:.80}")
            check_form(str(name), value[name], inner)


def _content(path: Path) -> bytes:
    _check_regular(path)
    return path.read_bytes()


def _check_regular(path: Path) -> None:
    """Refuse what is no file: a pipe would be waited for, and a device has no end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it must be a file, got a folder, a pipe or a device")
    if found.st_size > LARGEST:
        raise ValueError(f"it must have at most {LARGEST} bytes, got {found.st_size}")
