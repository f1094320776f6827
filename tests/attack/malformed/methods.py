"""A valid call of every public method: its name, with or without that of the class -> arguments for an instance."""

import pathlib

import numpy as np

import omg_cmdp as omg
import omg_lab
from omg_lab.worlds.base import World
from tests.attack.malformed import examples, trials
from tests.attack.malformed.examples import LABELS, SPACE, STEPS, VECTORS, H, S

OF_VECTORS = ("Linear", "Softmax", "Basis", "GLM", "KWIK", "PerBall", "Refitted")


def context(instance):
    """Return a context that `instance` accepts."""
    if isinstance(instance, World) or type(instance).__name__ in ("TableWorld", "SampledWorld"):
        return instance.contexts[0]
    return VECTORS[0].copy() if any(word in type(instance).__name__ for word in OF_VECTORS) else LABELS[0]


def of_context(instance):
    return {"context": context(instance)}


def of_path(instance):
    return {"path": pathlib.Path("written.npz").resolve()}


def uniform(space):
    rows = space.admissible / space.admissible.sum(axis=1, keepdims=True)
    return np.repeat(rows[None], space.horizon, axis=0)


def pairs_of(instance):
    """Return a context and the pairs of an episode, for an oracle."""
    return {"context": context(instance), "states": np.arange(H) % S, "actions": np.zeros(H, dtype=int)}


def learning(instance):
    """Return the arguments of an oracle's or an agent's `update`."""
    if isinstance(instance, omg.Agent):
        horizon = instance.space.horizon
        steps = {"states": [0] * (horizon + 1), "actions": [0] * horizon, "rewards": [0.5] * horizon}
        return {"trajectory": omg.Trajectory(context=context(instance), **steps)}
    is_reward = isinstance(instance, omg.RewardOracle)
    return {
        **pairs_of(instance),
        **({"rewards": np.full(H, 0.5)} if is_reward else {"next_states": np.ones(H, dtype=int)}),
    }


def playing(instance):
    return {**of_context(instance), "policy": uniform(instance.space), "generator": np.random.default_rng(0)}


METHODS = {
    **dict.fromkeys(
        (
            *("predict", "uncertainty", "functions", "posterior", "policy", "model", "best_policy", "decide", "bonus"),
            *("visits", "widths", "weights", "tally", "cell", "open", "truth", "optimal_value", "mdp", "outcomes"),
            *("trusted", "candidates", "counts", "covariance", "covariances", "votes"),
            *("beliefs", "optimistic_values", "sampled_values", "variances"),
            *("reward_functions", "transition_functions", "features", "hypotheses", "known", "limits", "costs"),
        ),
        of_context,
    ),
    "draws": lambda i: {**of_context(i), "count": 3, "generator": np.random.default_rng(0)},
    "for_world": lambda i: {"world": examples.world_for(i.space)},
    **{  # refused in worlds without budgets
        f"rivals.{name}.for_world": None
        for name in ("Clipped", "LagrangianGreedy", "OptCMDP", "OptPess", "OptPrimalDual")
    },
    "regret_bound": lambda i: {"episodes": 10, "horizon": H},
    "delayed_regret_bound": lambda i: {"episodes": 10, "horizon": H, "delay": 2, "constant": True},
    "update": learning,
    "misfit": lambda i: {"episodes": [learning(i)["trajectory"]]},
    "update_rewards": learning,
    **{
        f"{room}.{name}.update_rewards": None  # refused, whatever comes
        for room, kinds in (("agents", omg.agents), ("rivals", omg_lab.rivals))
        for name, kind in vars(kinds).items()
        if not getattr(kind, "waits_for_rewards", True)
    },
    "agents.Uniform.best_policy": None,  # it has no model
    "fingerprint": None,  # only a run calls it, with the contexts of its adversary
    "load_state": lambda i: {"state": i.state()},
    "save": of_path,
    "restore": lambda i: {"path": examples.a_file(i)},
    "sample": playing,
    # Hooks: a user writes them, and only we call them, with what was checked.
    **dict.fromkeys(("draw_reward", "context", "late", "memory", "misfits", "check_steps", "draws_from")),
    **dict.fromkeys(
        [
            f"agents.{name}.decide"
            for name in ("Accounted", "Anytime", "GainWeighted", "Schedule", "Theory", "UncertaintyWeighted")
        ],
    ),
    "agents.GainWeighted.gains": None,
    "check": lambda i: {"space": SPACE, "reward_range": (0.0, 1.0), "return_range": (0.0, 2.0)},
    # Documented: of these arguments nothing is checked, or only the tables.
    **dict.fromkeys(f"mdp.Episode.{name}" for name in ("of_arrays", "of_steps", "with_rewards")),
    **dict.fromkeys(("must_fit", "mdp.TabularMDP.of_space")),
    "mdp.Episode.first": lambda i: {"steps": 1},
    "mdp.Space.mdp": lambda i: {
        "transitions": examples.KERNELS["a"][0],
        "rewards": examples.REWARDS["a"][0],
    },
    "mdp.Space.difference": lambda i: {"other": SPACE},
    "mdp.Space.checked_policy": lambda i: {"policy": examples.UNIFORM},
    "oracles.FeatureMap.fit": lambda i: {
        **{"table": examples.RECORDS, "numbers": ["age"], "categories": ["ward"], "crosses": [("age", "ward")]},
        **{"outside": 0.1, "most": 3},
    },
    "planning.Problem.load": lambda i: {"path": examples.a_file(i)},
    "planning.Problem.plan": lambda i: {"start": omg.plan(examples.MDP, 9.0)},
    **dict.fromkeys(
        [f"rivals.{name}.bonus" for name in ("UCBVI", "OptCMDP", "OptPess", "OptPrimalDual")],
        lambda i: {"visits": np.ones((S, SPACE.actions))},
    ),
    "agents.Mixture.draw": lambda i: {"generator": np.random.default_rng(0)},
    "agents.Situation.plan": lambda i: {"gamma": 3.0, "weights": np.ones((H, S, SPACE.actions)), "start": None},
    "agents.Situation.plan_roots": lambda i: {"u": np.ones((H, S, SPACE.actions)), "floor": 0.1},
    "agents.Situation.plan_gains": lambda i: dict.fromkeys(("w", "visits"), np.ones((H, S, SPACE.actions))),
    "agents.Situation.least_weight": lambda i: {"floor": 0.1},
    "agents.Situation.assumptions": lambda i: {"episodes": 10, "delta": 0.1},
    "environments.TableWorld.original_value": lambda i: {"value": 0.5},
    "omg_lab.Comparison.report": lambda _: {"directory": pathlib.Path("report").resolve()},
    "environments.SampledWorld.returns": lambda i: {
        **of_context(i),
        "policy": uniform(i.space),
        "episodes": 2,
        "seed": 1,
    },
    "worlds.WorldEnv.reset": lambda i: {"seed": 1, "options": {"context": 1}},
    "worlds.WorldEnv.step": lambda i: (i.reset(seed=1), {"action": 0})[1],
    "runs.Advice.table": lambda i: {"state_names": list("xyz"), "action_names": list("uv")},
    "runs.Advice.plot": lambda i: {"state_names": list("xyz"), "action_names": list("uv")},
    "runs.Advice.of_record": lambda i: {"record": i.record()},
    "runs.Run.advance": lambda i: {"episodes": 1},
    "theory.RegretCeiling.add": lambda i: {
        "context": "a",
        "policy": uniform(SPACE),
        "trajectory": omg.Trajectory(**STEPS),
    },
    "theory.RegretCeiling.loss": lambda i: {"context": "a", "policy": uniform(SPACE)},
    "theory.RegretCeiling.replay": None,
    "theory.RegretCeiling.learn": lambda i: {"trajectory": omg.Trajectory(**STEPS)},
    "runs.Ledger.add": lambda i: {"context": "a", "row": examples.a_row()},
    "runs.Ledger.column": lambda i: {"name": "regret"},
    "logs.Log.name_policy": lambda i: {
        "policy": np.full((i.space.horizon, i.space.states, i.space.actions), 1 / i.space.actions)
    },
    "paid": None,  # only a purse calls it, with what was checked
    "logs.Log.of_costs": None,  # the log of the examples has no costs
    "logs.Log.of": lambda i: {"episodes": i.episodes},
    "logs.Log.add": lambda i: {"episode": omg.Episode(**STEPS)},
    "logs.Improvement.interval": lambda i: {"level": 0.9, "seed": 1},
    "logs.Estimate.interval": lambda i: {"level": 0.9, "seed": 1},
    "logs.Log.write": lambda i: {"path": pathlib.Path("log.jsonl").resolve()},
    **dict.fromkeys(
        ("audit.Audit.rows", "audit.Audit.table"),
        lambda i: {"reward_regret": 1.0, "dynamics_regret": 1.0, "delta": 0.1},
    ),
    **trials.METHODS,
}


def arguments(name):
    """Return how to call the method `name` (room.Class.method); None if it is left out; KeyError if it is unknown."""
    return METHODS[name] if name in METHODS else METHODS[name.rsplit(".", 1)[1]]
