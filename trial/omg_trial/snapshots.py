"""Snapshots: a state as bytes, so that a start need not fold all events. With them or without, it is the same state.

Everything that a state holds is in them, learning that is under way too: one may be taken after any event.
"""

from __future__ import annotations

import contextlib
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
from omg_trial.episodes import Example
from omg_trial.learning import model_digest
from omg_trial.log.database import Database
from omg_trial.log.events import BrokenChainError, Chain
from omg_trial.state import State
from omg_trial.trial_file.trial import Trial

FORMAT = 9
_HEAD, _STATE, _MODEL = "head.json", "state.json", "model"
_head, _state = TypeAdapter(tuple[int, str, list[Example]]), TypeAdapter(State)
"""The format, the digest of the model, and all examples, which the state names by their places; the state."""


def pack_state(state: State, agent: ModelAgent) -> bytes:
    """Return the state, and what its agent has learned, as bytes."""
    places: dict[Example, int] = {}
    body = _state.dump_json(state, context=places)
    head = _head.dump_json((FORMAT, model_digest(agent), list(places)))
    texts = {name: np.frombuffer(zlib.compress(text, 1), np.uint8) for name, text in ((_HEAD, head), (_STATE, body))}
    return pack_arrays({**texts, **joint_state({_MODEL: agent})})


def unpack_state(trial: Trial, content: bytes) -> tuple[State, dict[str, NDArray[Any]] | None]:
    """Return the state of a snapshot, and the arrays of its agent if it has learned from what is there now.

    A snapshot of another format, trial or model of this trial is a `ValueError`: it is only a cache.
    """
    try:
        packed = unpack_arrays(content)
        head, body = (zlib.decompress(packed[name].tobytes()) for name in (_HEAD, _STATE))
        form, model, examples = _head.validate_json(head)
        state, arrays = _state.validate_json(body, context=examples), part_of(packed, _MODEL)
        agent = trial.agent()
        agent.load_state(arrays)
    except (LookupError, TypeError, zlib.error) as error:
        raise ValueError("this is no snapshot of ours") from error
    if (form, model, state.trial) != (FORMAT, model_digest(agent), trial.digest):
        raise ValueError("the snapshot is of another format, model or trial")
    # After a withdrawal the agent in use still knows the person until it has learned again: it is no place to begin.
    return state, arrays if model == state.version.model else None


def restore_state(trial: Trial, store: Database, chain: Chain) -> tuple[State, dict[str, NDArray[Any]] | None]:
    """Return the state of the store's snapshot, if its digest is in the log; a fresh one if not."""
    if (kept := store.snapshot()) is not None:
        if kept.number > len(chain):
            rest = f"a snapshot was taken after event {kept.number}: the end is missing"
            raise BrokenChainError(f"the log ends with event {len(chain)}, but {rest}")
        # The event after it holds its digest, and is part of the chain: nobody can put another one in its place.
        anchor = next(store.read(kept.number), None)
        known = anchor is not None and chain.holds(anchor) and anchor.kind == "snapshot" and anchor.body["digest"]
        if known == hashlib.sha256(kept.content).hexdigest():
            content = store.keys.unseal_snapshot(kept.content)
            with contextlib.suppress(ValueError):  # of an earlier version of this software: everything is folded
                if content is not None:
                    return unpack_state(trial, content)
    return State(trial.missing_reward), None


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


def set_aside() -> None:
    """Look once which objects are garbage, and leave those that are not out of later searches.

    A search among all objects of a service stops its threads for a tenth of a second, and for longer in a long trial.
    """
    gc.unfreeze()  # what was set aside before may be garbage by now
    gc.collect()
    gc.freeze()
