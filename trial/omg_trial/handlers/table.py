"""The handler of every call, by the name of the call."""

from __future__ import annotations

from collections.abc import Callable

from omg_trial.contract import calls
from omg_trial.decisions import DecisionInputs
from omg_trial.handlers import episodes, people, steering
from omg_trial.handlers.handled import Handled


def handle(at: DecisionInputs, call: calls.Call, target: int | str | None) -> Handled:
    """Return the event and the answer of a call about an episode or a person; `Refusal` if it is refused."""
    return _HANDLERS[call.name](at, call, target)


_HANDLERS: dict[str, Callable[..., Handled]] = {
    "open": episodes.handle_open,
    "decide": episodes.handle_decide,
    "report": episodes.handle_report,
    "close": episodes.handle_close,
    "enrol": people.handle_enrol,
    "pause": steering.handle_pause,
    "resume": steering.handle_pause,
    "stop": steering.handle_pause,
    "publish": steering.handle_publish,
    "withdraw": steering.handle_withdraw,
    "erase": steering.handle_erase,
    "look": steering.handle_look,
    "learn": steering.handle_learn,
    "roll back": steering.handle_roll_back,
    "acknowledge": steering.handle_acknowledge,
}
