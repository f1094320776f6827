"""An app that asks the service of a trial what to do: one person, one day, two decisions, with or without a network.

    omg-trial serve adherence.toml --new
    python examples/app.py http://127.0.0.1:8000 TOKEN

Without arguments it starts a service of its own, in a temporary folder.
"""

import random
import sys
import tempfile
from pathlib import Path

from omg_trial.client import Client
from omg_trial.tokens import Tokens
from omg_trial.trial_file import Trial
from omg_trial.web.server import serving

TRIAL_FILE = Path(__file__).with_name("adherence.toml")


def play_a_day(client: Client, person: str, context: dict[str, object]) -> list[str]:
    """Open an episode, do what the service says, and tell what came of it."""
    episode, state, done = client.open(person, context)["episode"], "took it", []
    for step in range(2):
        decision = client.decide(episode, step, state)
        done.append(decision["action"])  # here the app sends its message
        state = "took it" if random.random() < (0.8 if decision["action"] == "reminder" else 0.5) else "missed it"
        client.report(episode, step, reward=float(state == "took it"), next_state=state)
    client.close(episode)
    return done


def main(url: str, token: str) -> None:
    """Play a day of three people. The queue file outlives a crash of this program."""
    with Client(url, token, queue=Path(tempfile.mkdtemp()) / "queue") as client:
        for number, age in enumerate((34, 58, 81)):
            print(f"p{number}:", ", ".join(play_a_day(client, f"p{number}", {"age": age})))
        print("Everything is sent." if not client.send() else "Something was still waiting.")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].startswith("http"):
        main(*sys.argv[1:])
    else:
        folder = Path(tempfile.mkdtemp())
        with serving(Trial.read(TRIAL_FILE), folder / "trial.db", folder / "tokens") as address:
            main(address, Tokens(folder / "tokens").add("app", "example"))
