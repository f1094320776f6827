"""Results that were measured before: one JSON file, written after every run, so that a command continues."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any


class Kept:
    """Answers by what was asked; with `run`, what is missing is measured, with `only` that of these agents."""

    def __init__(self, path: Path, *, run: bool = True, only: Collection[str] = ()) -> None:
        self.path, self.run, self.only = path, run, only
        self._answers: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    @property
    def whole(self) -> bool:
        """Whether everything that is missing is measured."""
        return self.run and not self.only

    def each(self, measure: Callable[..., Any], seeds: Iterable[int], *asked: object, agent: str) -> list[Any]:
        """Return the answers `measure(seed=seed)` of all seeds, as far as they are there; `agent` is whose they are."""
        keys = {" | ".join(map(str, (*asked, seed))): seed for seed in seeds}
        for key, seed in keys.items():
            if self.run and key not in self._answers and (not self.only or agent in self.only):
                self._answers[key] = measure(seed=seed)
                self._write()
        return [self._answers[key] for key in keys if key in self._answers]

    def _write(self) -> None:
        self.path.parent.mkdir(exist_ok=True, parents=True)
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(self._answers, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(self.path)
