"""Snapshots: a state as bytes, so that a start need not fold all events. With them or without, it is the same state.

Everything that a state holds is in them, learning that is under way too: one may be taken after any event.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import hashlib
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.persistence import joint_state, pack_arrays, part_of, unpack_arrays
from omg_trial.episodes import Dataset, Example, KeptPlan, Record
from omg_trial.incident import Incident
from omg_trial.learning import model_digest
from omg_trial.log.database import Database
from omg_trial.log.events import BrokenChainError, Chain
from omg_trial.people.participants import Halt, Participant
from omg_trial.state import State
from omg_trial.trial_file.trial import Trial
from omg_trial.versions import Change, LearningTask, Version

FORMAT = 8
_TEXT, _MODEL = "state.json", "model"
_PLAIN = (
    *("number", "hash", "time", "trial", "secret", "latest", "changes", "incidents", "closed_since", "stale"),
    *("software", "machine", "since", "digests", "people", "halted", "halted_actions"),
)
"""Attributes of a state that are kept as they are."""


@dataclasses.dataclass(kw_only=True)
class SavedState:
    """A state as JSON has it; pydantic writes and reads it. Versions share examples, which are there once."""

    format: int = FORMAT
    model: str
    number: int
    hash: str
    time: str
    trial: str | None
    secret: str
    records: list[Record]
    withdrawn: list[str]
    erased: list[str]
    people: dict[str, Participant]
    halted: Halt | None
    halted_actions: dict[int, Halt]
    plans: dict[str, KeptPlan]
    examples: list[Example]
    versions: list[tuple[int, list[int], str, str]]
    waiting: tuple[int, list[int], str, str] | None
    learning: tuple[int, list[int], int] | None
    latest: int
    changes: list[Change]
    incidents: list[Incident]
    closed_since: int
    stale: bool
    software: dict[str, Any]
    machine: dict[str, Any]
    since: str
    digests: dict[str, str]


_JSON = TypeAdapter(SavedState)


def pack_state(state: State, agent: ModelAgent) -> bytes:
    """Return the state, and what its agent has learned, as bytes."""
    examples: dict[Example, int] = {}  # twenty versions of the same episodes would be twenty times as long

    def places(dataset: Dataset) -> list[int]:
        return [examples.setdefault(each, len(examples)) for each in dataset]

    task, waits = state.learning, state.waiting
    saved = SavedState(
        model=model_digest(agent),
        records=list(state.episodes.values()),
        withdrawn=sorted(state.withdrawn),
        erased=sorted(state.erased),
        plans=state.plans,
        versions=[(number, places(dataset), model, time) for number, dataset, model, time in state.versions],
        waiting=None if waits is None else (waits.number, places(waits.dataset), waits.model, waits.time),
        learning=None if task is None else (task.number, places(task.dataset), task.settled),
        examples=list(examples),
        **{name: vars(state)[name] for name in _PLAIN},
    )
    text = np.frombuffer(zlib.compress(_JSON.dump_json(saved), 1), dtype=np.uint8)
    return pack_arrays({_TEXT: text, **joint_state({_MODEL: agent})})


def unpack_state(trial: Trial, content: bytes) -> tuple[State, dict[str, NDArray[Any]] | None]:
    """Return the state of a snapshot, and the arrays of its agent if it has learned from what is there now.

    A snapshot of another format, trial or model of this trial is a `ValueError`: it is only a cache.
    """
    try:
        packed = unpack_arrays(content)
        saved, arrays = _JSON.validate_json(zlib.decompress(packed[_TEXT].tobytes())), part_of(packed, _MODEL)
        agent = trial.agent()
        agent.load_state(arrays)
    except (KeyError, TypeError, zlib.error) as error:
        raise ValueError("this is no snapshot of ours") from error
    if (saved.format, saved.model, saved.trial) != (FORMAT, model_digest(agent), trial.digest):
        raise ValueError("the snapshot is of another format, model or trial")
    state = _unpack(saved, trial.missing_reward)
    # After a withdrawal the agent in use still knows the person until it has learned again: it is no place to begin.
    return state, arrays if saved.model == state.version.model else None


def restore_state(trial: Trial, store: Database, chain: Chain) -> tuple[State, dict[str, NDArray[Any]] | None]:
    """Return the state of the store's snapshot, if its digest is in the log; a fresh one if not."""
    fresh, kept = State(trial.missing_reward), store.snapshot()
    if kept is None:
        return fresh, None
    if kept.number > len(chain):
        rest = f"a snapshot was taken after event {kept.number}: the end is missing"
        raise BrokenChainError(f"the log ends with event {len(chain)}, but {rest}")
    # The event after it holds its digest, and is part of the chain: nobody can put another one in its place.
    anchor = next(store.read(kept.number), None)
    if anchor is None or not chain.holds(anchor) or anchor.kind != "snapshot":
        return fresh, None
    if anchor.body["digest"] != hashlib.sha256(kept.content).hexdigest():
        return fresh, None
    content = store.keys.unseal_snapshot(kept.content)
    try:
        return (fresh, None) if content is None else unpack_state(trial, content)
    except ValueError:  # of an earlier version of this software: everything is folded
        return fresh, None


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Make millions of objects without looking again and again which of them are garbage: none is."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _unpack(saved: SavedState, missing_reward: float | None) -> State:
    state = State(missing_reward)
    for name in _PLAIN:
        setattr(state, name, vars(saved)[name])
    for record in saved.records:
        state.restore(record)
    state.withdrawn, state.erased, state.plans = set(saved.withdrawn), set(saved.erased), saved.plans

    def dataset(places: list[int]) -> Dataset:
        return tuple(saved.examples[place] for place in places)

    state.versions = [Version(number, dataset(places), model, time) for number, places, model, time in saved.versions]
    if saved.waiting is not None:
        number, places, model, time = saved.waiting
        state.waiting = Version(number, dataset(places), model, time)
    if saved.learning is not None:
        number, places, settled = saved.learning
        state.learning = LearningTask(number, dataset(places), settled)
    return state
