"""Valid calls of what a trial is made with: the study file, tokens, the database, the client, replay and export."""

import functools
import json
import pathlib
import re

import httpx

from omg_trial.client import Client
from omg_trial.contract import Refusal
from trial.tests import trials

PERSON = {"person": "p1", "context": {"age": 50}}
NAMES = {
    **{"episodes": "open", "decisions": "decide", "outcomes": "report", "close": "close"},
    **{"people": "enrol", "roll-back": "roll back"},
}


@functools.cache
def played():
    """Return the events of a small trial."""
    at = trials.desk()
    trials.Trialist(at, seed=0).play(4)
    return tuple(at.store.read())


def log():
    return {"trial": trials.trial(), "events": list(played())}


def a_client():
    """Return a client of a desk, without a web server between them."""
    at = trials.desk()

    def answer(request):
        room, _, episode, name = re.fullmatch(r"/v1/([\w-]+)(/(\d+)/(\w+))?", request.url.path).groups()
        body = json.loads(request.content) | ({} if episode is None else {"episode": int(episode)})
        try:
            made = at.call(NAMES.get(name or room, room), body, request.headers["Idempotency-Key"])
        except Refusal as refusal:
            return httpx.Response(refusal.status, json={"error": refusal.message})
        return httpx.Response(200, text=made.text, headers={"Log-Head": made.mark})

    return Client("http://service", "token", transport=httpx.MockTransport(answer))


def of_step(client, **more):
    return {"episode": client.open(**PERSON)["episode"], "step": 0, **more}


EXAMPLES = {
    "tokens.Tokens": lambda: {"path": pathlib.Path("tokens").resolve()},
    "log.database.Database": lambda: {"url": pathlib.Path("trial.db").resolve(), "writing": True},
    "client.Client": lambda: {
        "url": "http://service",
        "token": "token",
        "queue": pathlib.Path("queue.db").resolve(),
        "patience": 1.0,
        "transport": httpx.MockTransport(lambda _: httpx.Response(503)),
    },
    "replay.replay": log,
    "export.decisions": log,
    "export.live_log": lambda: {**log(), "policy": trials.trial().fixed_policy()},
    "export.write_field_table": lambda: {
        **log(),
        "path": pathlib.Path("mrt.csv").resolve(),
        "form": "mrt",
        "treatments": ["call"],
    },
    "export.write_minari": lambda: {**log(), "path": pathlib.Path("minari").resolve()},
    "export.write_decisions": lambda: {**log(), "path": pathlib.Path("decisions.csv").resolve()},
}
REASONS = {
    "trial_file.Trial": "made by its class methods, which are called",
    "replay.Replay": "made by `replay`, whose arguments are attacked",
    **{
        f"replay.{name}": "asked by a desk and by a replay, with what they have checked"
        for name in ("has_erased", "nameless", "difference", "check_software", "check_store")
    },
    "tokens.Token": "made by `Tokens.add`, whose arguments are attacked",
    "desk.Desk": "made by `serving`; what arrives there is attacked over HTTP, by trial/tests/test_web.py",
    "web.server.serving": "listens at a port; its database and tokens are those above",
}
INSTANCES = {"trial_file.Trial": trials.trial, "client.Client": a_client}
METHODS = {
    "trial_file.Trial.read": lambda _: {"path": study_file()},
    "trial_file.Trial.parse": lambda _: {"text": trials.TEXT, "name": "trial.toml"},
    "tokens.Tokens.find": lambda tokens: {"token": tokens.add("app", "me")},
    "tokens.Tokens.revoke": lambda _: {"name": "me"},
    "tokens.Tokens.forget": lambda _: {"person": "p1"},
    "tokens.Tokens.add": lambda _: {"role": "app", "name": "me"},
    # Only a desk calls them, with what it has checked.
    **{
        f"log.database.Database.{name}": None
        for name in ("read", "rows", "some_rows", "append", "answered", "mark", "keep", "forget")
    },
    "trial_file.Trial.action_name": None,  # of an index that the log holds
    "trial_file.Trial.vector": None,  # of a context that the trial file has checked
    "client.Client.open": lambda _: dict(PERSON),
    "client.Client.steer": lambda _: {"what": "pause", "cause": "a test"},
    "client.Client.enrol": lambda _: {"person": "p1", "zone": "Europe/Berlin", "end": "2027-01-01"},
    "client.Client.decide": lambda client: of_step(client, state="took it"),
    "client.Client.report": lambda client: of_step(client, reward=1.0, next_state="took it", revision=0),
    "client.Client.close": lambda client: {"episode": client.open(**PERSON)["episode"], "cause": "finished"},
}


def study_file():
    path = pathlib.Path("trial.toml").resolve()
    path.write_text(trials.TEXT, encoding="utf-8")
    return path
