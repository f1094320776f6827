"""The files of a study, none of which is ever half written.

    study.json                  the resolved configuration, versions, commit, date
    log/RUN-000000.parquet      parts of a run's log: pandas.read_parquet("DIR/log") reads all runs
    state/RUN.npz               the last checkpoint of a run
    runs/RUN.json               the result of a finished run, or the error of one that failed

A file is written under a temporary name in state/, and then moved to its place in one step. A run writes a part of its
log, then the checkpoint that says how many parts count, and at the end its result. After a crash, parts that the
checkpoint does not count are deleted, and their episodes are played again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from omg_cmdp.persistence import read_arrays, whole_file, write_arrays
from omg_cmdp.studies.document import StudyError

FORMAT = 1
"""Of a study's directory; a study of another format is refused."""

_KIND, _VERSION = "checkpoint of a run", 1

LOCK_SECONDS = 60.0
"""How long to wait for another process that plays the same run."""


class BusyError(RuntimeError):
    """Another process is playing this run."""


class Store:
    """The files of a study."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self.log, self.state, self.runs = (self.directory / name for name in ("log", "state", "runs"))

    def create(self) -> None:
        """Make the directories."""
        for folder in (self.log, self.state, self.runs):
            folder.mkdir(parents=True, exist_ok=True)

    def write_study(self, content: Mapping[str, Any]) -> None:
        """Write the configuration of the study and its provenance."""
        whole = {"format": FORMAT, **content}
        self._replace(self.directory / "study.json", "study", lambda file: _write_json(file, whole))

    def study(self) -> dict[str, Any] | None:
        """Return the configuration of the study and its provenance; None if there is no study."""
        path = self.directory / "study.json"
        if not path.exists():
            return None
        content = _read_json(path)
        if content.pop("format", None) != FORMAT:
            raise StudyError(f"{path} must be a study of format {FORMAT}: it was written by another version")
        return content

    # The result of a run.

    def result(self, run: str) -> dict[str, Any] | None:
        """Return the result of a run; None if there is none yet."""
        path = self.runs / f"{run}.json"
        return _read_json(path) if path.exists() else None

    def results(self) -> Iterator[dict[str, Any]]:
        """Yield all results, in the order of their names."""
        yield from (_read_json(path) for path in sorted(self.runs.glob("*.json")))

    def is_finished(self, run: str) -> bool:
        """Return whether a run has been played to its end."""
        result = self.result(run)
        return result is not None and result["status"] == "finished"

    def write_result(self, run: str, result: Mapping[str, Any]) -> None:
        """Write the result of a run."""
        self._replace(self.runs / f"{run}.json", run, lambda file: _write_json(file, result))

    # Its log and checkpoint.

    def part(self, run: str, number: int) -> Path:
        """Return the path of a part of the log."""
        return self.log / f"{run}-{number:06d}.parquet"

    def parts(self, run: str) -> list[Path]:
        """Return the paths of the existing parts of a run's log, in order."""
        return sorted(path for path in self.log.glob(f"{run}-*.parquet") if path.stem[:-7] == run)

    def write_part(self, run: str, number: int, write: Callable[[str], object]) -> None:
        """Store a part of the log, which `write` writes to the path that it is given."""
        self._replace(self.part(run, number), run, write)

    def write_checkpoint(self, run: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the checkpoint."""
        write_arrays(self.state / f"{run}.npz", arrays, kind=_KIND, version=_VERSION)

    def checkpoint(self, run: str) -> dict[str, NDArray[Any]] | None:
        """Return the last checkpoint; None if there is none."""
        path = self.state / f"{run}.npz"
        return read_arrays(path, kind=_KIND, version=_VERSION) if path.exists() else None

    def saved_at(self, run: str) -> int:
        """Return when the last checkpoint was written, in nanoseconds; 0 if there is none."""
        path = self.state / f"{run}.npz"
        return path.stat().st_mtime_ns if path.exists() else 0

    def forget_after(self, run: str, parts: int) -> None:
        """Delete all but the first `parts` parts of the log, and what a crash may have left half written."""
        for path in self.parts(run)[parts:]:
            path.unlink()
        for pattern in (".npz.tmp-*", ".tmp-*"):
            for path in self.state.glob(f"{run}{pattern}"):
                path.unlink()

    @contextlib.contextmanager
    def owned(self, run: str) -> Iterator[None]:
        """Lock a run, so that no other process plays it meanwhile. The lock of a process that dies is released."""
        import fcntl

        with (self.state / f"{run}.lock").open("w") as file:
            until = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise BusyError(f"another process is playing {run}; waited {LOCK_SECONDS:g} seconds") from None
                    time.sleep(0.05)
            yield

    def _replace(self, target: Path, run: str, write: Callable[[str], object]) -> None:
        """Let `write` make a file, and replace `target` by it when all of it is on disk."""
        with whole_file(target, self.state / f"{run}.tmp-{os.getpid()}") as temporary:
            write(str(temporary))


def _write_json(file: str, content: Mapping[str, Any]) -> None:
    # JSON has no NaN and no infinity.
    plain = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in content.items()
    }
    Path(file).write_text(json.dumps(plain, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
