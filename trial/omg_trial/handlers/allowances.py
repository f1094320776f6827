"""The signature of an allowance, an HMAC under the trial's secret.

The allowance is part of the event, and its signature of the answer. An app that says later what it did without a
network shows the signature: nobody else can have been given these draws.
"""

from __future__ import annotations

import hmac

from omg_trial.contract import Refusal, calls
from omg_trial.decisions import DecisionInputs
from omg_trial.episodes import Record
from omg_trial.keys.marks import keyed_hash
from omg_trial.log.events import canonical


def sign_allowance(at: DecisionInputs, episode: int, person: str, occasion: str, until: str) -> str:
    """Return the signature of an allowance."""
    return keyed_hash(at.state.secret, canonical(["allowance", episode, person, occasion, until])).hex()


def check_allowance(at: DecisionInputs, record: Record, call: calls.Decide) -> None:
    """Refuse what an app did without a network, in an episode with an allowance, if it does not show the signature."""
    if call.action is None or record.allowance is None:
        return
    signature = sign_allowance(at, record.number, record.person, record.occasion, record.allowance.until)
    if not hmac.compare_digest(signature, call.allowance or ""):
        raise Refusal(409, "`allowance`: send the signature with which the episode was opened")
    if call.device_time is None:
        raise Refusal(422, "`device_time`: say when the app acted, as an allowance ends")
