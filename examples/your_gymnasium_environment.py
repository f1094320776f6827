"""Your own Gymnasium environment: a pump that wears out, run by OMG with oracles that learn how dust wears it.

Every day is an episode, and its context is the forecast of dust in the air. The pump's owner sees the wear, chooses
between half speed, full speed and a service, and knows neither what dust does nor what the best policy is.
"""

import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

import omg_cmdp as omg
from omg_cmdp.environments import SampledWorld, from_gymnasium

DAYS, HOURS, FORECASTS = 1500, 12, (0.1, 0.4, 0.7, 1.0)
ACTIONS = ("half speed", "full speed", "service")
Step = tuple[int, float, bool, bool, dict[str, Any]]


class Pump(gymnasium.Env[Any, Any]):
    """Wear 0..3; a worn pump that wears further breaks, which costs 8 and ends the day."""

    observation_space, action_space = Discrete(4), Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin a day; the forecast comes in the options."""
        super().reset(seed=seed)
        self.dust, self.wear = (options or {}).get("context", 0.5), 0
        return self.wear, {"context": self.dust}

    def step(self, action: int) -> Step:
        """Run the pump for an hour."""
        if action == 2:
            self.wear = 0
            return self.wear, -3.0, False, False, {}
        self.wear += int(self.np_random.random() < (0.1 * self.dust, 0.1 + 0.9 * self.dust)[action])
        return (3, -8.0, True, False, {}) if self.wear > 3 else (self.wear, 1.0 + action, False, False, {})


def careful(context: float) -> NDArray[np.float64]:
    """Return a rule of thumb as a policy (H, S, A): full speed, a service at wear 3. Ended days stay in state 4."""
    return np.tile(np.eye(3)[[1, 1, 1, 2, 0]], (HOURS, 1, 1))


def main() -> None:
    """Learn day by day, and compare with the rule of thumb."""
    world = from_gymnasium(Pump, FORECASTS, horizon=HOURS, reward_range=(-8.0, 2.0))  # proves that contexts get in
    assert isinstance(world, SampledWorld)  # a Pump has no tables: its optimum is unknown

    def mixture(dust: float) -> list[float]:
        return [dust, 1.0 - dust]  # rewards and wear are linear in this, with unknown coefficients

    rewards = omg.oracles.LinearRewards(states=5, actions=3, horizon=HOURS, dimension=2, features=mixture)
    dynamics = omg.oracles.BasisDynamics(states=5, actions=3, horizon=HOURS, bases=2, features=mixture)
    agent = omg.OMG(world.space, rewards, dynamics, reward_range=world.reward_range)

    days = np.random.default_rng(0).choice(FORECASTS, size=DAYS).tolist()
    with tempfile.TemporaryDirectory() as folder:
        log = omg.play(world, agent, days, log=Path(folder) / "pump.jsonl")
        print("Logged:", (Path(folder) / "pump.jsonl").read_text()[:70], "...")
    print(f"Earned a day: {log.returns[:50].mean():.1f} at first, {log.returns[-50:].mean():.1f} at last")
    for dust in FORECASTS:
        plan = [ACTIONS[action] for action in agent.policy(dust)[5, :4].argmax(axis=1)]
        print(f"  dust {dust}: at wear 0..3 in hour 5", ", ".join(plan))

    print("The last 100 days against the better of two policies, OMG's now and the rule of thumb:")
    table = omg.shortfall(world, log[-100:], {"OMG now": agent.policy, "careful": careful}, rollouts=200)
    print(table.round(2).to_string(index=False))
    ours, theirs = (
        np.mean([world.returns(dust, policy(dust), 200, seed=1).mean() for dust in FORECASTS])
        for policy in (agent.policy, careful)
    )
    print(f"OMG now earns {ours:.1f} a day, {'more' if ours > theirs else 'less'} than the rule of thumb.")


if __name__ == "__main__":
    main()
