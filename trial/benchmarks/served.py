"""`python -m trial.benchmarks.served FILE`: is a served trial of 200 people still what it was, to the bit?

The first time it writes FILE; later it compares. One client asks over HTTP, in a fixed order and with seeded outcomes;
the secret and the clock are fixed, and every model is waited for. All answers and the digests of all models count.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

from omg_trial import service
from omg_trial.desk import Desk
from omg_trial.log.database import Database
from omg_trial.tokens import Tokens
from omg_trial.trial_file import EXAMPLE, Trial
from omg_trial.web.server import serving

PEOPLE, LEARN_AFTER = 200, 8
FILE = f"{EXAMPLE}\n[learning]\nafter_episodes = {LEARN_AFTER}\n"
HELPED = {"nothing": 0.4, "reminder": 0.7}


class _Caller:
    """Asks one call after the other, and remembers all answers."""

    def __init__(self, address: str, token: str) -> None:
        self._http = httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"})
        self.answers: list[Any] = []

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"Idempotency-Key": f"k{len(self.answers)}"}
        self.answers.append(self._http.post(path, json=body, headers=headers).raise_for_status().json())
        return self.answers[-1]

    def wait_for(self, version: int) -> None:
        while self._http.get("/v1/health").json()["version"] < version:
            time.sleep(0.01)


def play() -> dict[str, Any]:
    """Serve the trial, and return all answers and models."""
    draw, keys, now = random.Random(0), itertools.count(), datetime.datetime(2026, 11, 2, 9, tzinfo=datetime.UTC)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("secrets.token_hex", lambda size=32: "5" * 64 if size == 32 else f"{next(keys):032x}"),
        mock.patch.dict(Desk.__init__.__kwdefaults__, clock=lambda: now),
        mock.patch.object(service, "TICK_SECONDS", 1e6),  # no incidents, which would be numbered too
    ):
        database, tokens = Path(folder, "trial.db"), Path(folder, "tokens")
        with serving(Trial.parse(FILE), database, tokens) as address:
            caller = _Caller(address, Tokens(tokens).add("app", "benchmark"))
            for person in range(PEOPLE):
                _play_episode(caller, person, draw)
                caller.wait_for((person + 1) // LEARN_AFTER)
        store = Database(database, writing=False)
        models = [event.body["model"] for event in store.read() if event.kind == "learned"]
        store.close()
    return {"answers": caller.answers, "models": models}


def _play_episode(caller: _Caller, person: int, draw: random.Random) -> None:
    context, state = ("alone", "with others")[person % 2], "took it"
    path = f"/v1/episodes/{caller.ask('/v1/episodes', {'person': f'p{person}', 'context': context})['episode']}"
    for step in range(2):
        action = caller.ask(f"{path}/decisions", {"step": step, "state": state})["action"]
        took = draw.random() < HELPED[action]
        state = "took it" if took else "missed it"
        caller.ask(f"{path}/outcomes", {"step": step, "reward": float(took), "next_state": state})
    caller.ask(f"{path}/close", {})


def main() -> None:
    """Write the file, or compare with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    path, found = parser.parse_args().file, json.loads(json.dumps(play()))
    if not path.exists():
        path.write_text(json.dumps(found), encoding="utf-8")
        print(f"{len(found['answers'])} answers and {len(found['models'])} models written to {path}")
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    for kind, values in found.items():
        same = sum(one == other for one, other in zip(before[kind], values, strict=False))
        print(f"{same} of {len(before[kind])} {kind} are equal to the bit")
    raise SystemExit(found != before)


if __name__ == "__main__":
    main()
