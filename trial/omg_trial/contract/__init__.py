"""The calls of a trial and their answers: one set of pydantic models, made from the trial file.

They parse what arrives, are the types of what goes on inside, and are the OpenAPI document. A call is checked once,
where it enters, by the same models over HTTP and for a caller in this process.
"""

from omg_trial.contract.calls import KEY, KEY_RULE, Answer, KeyedCall, OlderLog, OutsideConsent, Refusal
from omg_trial.contract.models import Contract

__all__ = ["KEY", "KEY_RULE", "Answer", "Contract", "KeyedCall", "OlderLog", "OutsideConsent", "Refusal"]
