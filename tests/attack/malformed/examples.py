"""A valid call of every public function and constructor: name -> a fresh dictionary of arguments."""

import inspect
import math
import pathlib
from unittest import mock

import numpy as np

import omg_cmdp as omg
import omg_lab
from omg_cmdp import adversaries, agents, environments, oracles, theory
from omg_cmdp.agents.building import arguments_for, arguments_of
from omg_cmdp.contexts import keyed
from omg_cmdp.mdp.bellman import value_bounds
from omg_cmdp.runs.ledger import Row
from omg_lab import rivals, worlds
from tests.attack.malformed import trials

S, A, H, D = 3, 2, 2, 3
SIZES = {"states": S, "actions": A, "horizon": H}
LABELS = ("a", "b")
RECORDS = {"age": [20, 40, None], "ward": ["a", "b", "a"]}
VECTORS = (np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.5, 0.3]))
_rng = np.random.default_rng(0)
REWARDS = {label: _rng.random((4, S, A)) for label in LABELS}
KERNELS = {label: _rng.dirichlet(np.ones(S), (4, S, A)) for label in LABELS}
SPACE, ONE_STEP = omg.Space(**SIZES), omg.Space(states=S, actions=A, horizon=1)
MDP = SPACE.mdp(transitions=KERNELS["a"][0], rewards=REWARDS["a"][0])
UNIFORM = np.full((H, S, A), 1.0 / A)
GIVEN = {**SIZES, "episodes": 100, "delta": 0.1, "reward_regret": 3.0, "dynamics_regret": 5.0}
STEPS = {"context": "a", "states": [0, 1, 2], "actions": [0, 1], "rewards": [0.5, 1.0]}
RANGES = {"reward_range": (0.0, 1.0), "return_range": (0.0, 1.5)}


class Small(omg.ContextualMDP):
    space = SPACE

    def mdp(self, context):
        if not isinstance(context, str) or context not in LABELS:
            raise ValueError(f"`context` must be one of {LABELS}, got {context!r:.60}")
        return SPACE.mdp(transitions=KERNELS[context][0], rewards=REWARDS[context][0])


WORLD = Small()


def by_label(tables):
    """Return a function of a label that refuses all others, as a user's should."""

    def table(context):
        if not isinstance(context, str) or context not in tables:
            raise ValueError(f"`context` must be one of {LABELS}, got {context!r:.60}")
        return tables[context]

    return table


def world_for(space):
    """Return a world of this space with a class of functions."""
    made = Small()
    made.space, made.contexts = space, LABELS
    made.reward_functions, made.transition_functions = by_label(REWARDS), by_label(KERNELS)
    return made


def pair():
    return {"reward_oracle": oracles.CountRewards(**SIZES), "dynamics_oracle": oracles.CountDynamics(**SIZES)}


def finite():
    rewards, dynamics = oracles.FiniteRewards(REWARDS, horizon=H), oracles.FiniteDynamics(KERNELS, horizon=H)
    return {"reward_oracle": rewards, "dynamics_oracle": dynamics}


def offline():
    rewards = oracles.OfflineFiniteRewards(REWARDS, horizon=H)
    return {"reward_oracle": rewards, "dynamics_oracle": oracles.OfflineFiniteDynamics(KERNELS, horizon=H)}


def model_agent(make=pair, **more):
    return lambda: {"space": SPACE, **make(), **RANGES, **more}


def cells(**more):
    return lambda: {"space": SPACE, "cover": rivals.PerContext(), **RANGES, **more}


LIMITS = {"costs": np.ones((1, S, A)), "budgets": [1.0]}


def bandit(rewards, **options):
    return lambda: {
        "space": ONE_STEP,
        "reward_oracle": rewards(),
        "dynamics_oracle": one_step_dynamics(),
        **(options or {"gamma": 20.0}),
    }


def one_step_rewards():
    return oracles.FiniteRewards(REWARDS, horizon=1)


def one_step_dynamics():
    return oracles.CountDynamics(states=S, actions=A, horizon=1)


def a_log(*, count=3):
    episode = omg.Episode(**STEPS, propensities=[0.5, 0.5])
    return omg.Log(SPACE, [episode] * count)


def a_varied_log():
    generator = np.random.default_rng(0)
    return omg.Log(SPACE, [WORLD.sample("a", UNIFORM, generator) for _ in range(120)])


def an_agent():
    return agents.Greedy(SPACE, **pair())


def lake(tables=True):
    arguments = {"arguments": "success_rate", "horizon": 4, "reward_range": (0.0, 1.0)}
    return environments.from_gymnasium("FrozenLake-v1", [0.5, 0.9], tables=tables, **arguments)


def lake_agent():
    sizes = {"states": 17, "actions": 4, "horizon": 4}
    return agents.Greedy(omg.Space(**sizes), oracles.CountRewards(**sizes), oracles.CountDynamics(**sizes))


def an_export():
    import pandas

    row = {"context": '"a"', "states": "[0, 1, 2]", "actions": "[0, 1]", "rewards": "[0.5, 1.0]"}
    return pandas.DataFrame([row])


def refitted_model(name):
    def build():
        from sklearn import linear_model

        made = linear_model.LinearRegression() if name == "Rewards" else linear_model.LogisticRegression()
        return {"model": made, **SIZES, "every": 0.5, "members": 2, "features": None, "admissible": None}

    return build


def some_rows():
    audit = omg_lab.Audit()
    omg.simulate(WORLD, adversaries.IID(LABELS), agents.Greedy(SPACE, **pair()), 2, observe=audit)
    return [audit.rows()]


CONTEXTS = {"contexts": list(LABELS)}
MADE = {"predictions": REWARDS, "horizon": H}
KERNEL_CLASS = {"predictions": KERNELS, "horizon": H}
LINEAR = {**SIZES, "dimension": D}
GLM = {"space": SPACE, "dimension": D, "link": "logit", "scale": 1.0, "delta": 0.1, "ridge": 1.0, **RANGES}
ERRORS = {"reward_error": 2.0, "dynamics_error": 3.0}
WORLD_OPTIONS = {"context_count": 3, "misspecification": 0.1, "seed": 1}

EXAMPLES = {
    "mdp.Episode": lambda: {**STEPS, "propensities": [0.5, 0.5], "length": 2},
    "mdp.Trajectory": lambda: dict(STEPS),
    "mdp.Space": lambda: {
        **SIZES,
        "start": [0.5, 0.5, 0.0],
        "admissible": np.ones((S, A), dtype=bool),
    },
    "mdp.TabularMDP": lambda: {"transitions": KERNELS["a"][0], "rewards": REWARDS["a"][0], "horizon": H, "start": 0},
    "mdp.occupancy_measure": lambda: {"mdp": MDP, "policy": UNIFORM},
    "mdp.optimal_policy": lambda: {"mdp": MDP, "bounds": value_bounds(H)},
    "mdp.policy_value": lambda: {"mdp": MDP, "policy": UNIFORM},
    "mdp.reachable_states": lambda: {"mdp": MDP},
    "mdp.squared_hellinger": lambda: {"p": [0.5, 0.5], "q": np.array([[0.1, 0.9], [1.0, 0.0]])},
    "planning.Problem": lambda: {"mdp": MDP, "gamma": 10.0, "weights": np.ones((S, A)), "tolerance": 1e-6},
    "planning.least_excess": lambda: {"mdp": MDP, "costs": np.ones((1, S, A)), "budgets": [1.0], "prices": [2.0]},
    "planning.certificate": lambda: {"mdp": MDP, "policy": UNIFORM, "values": np.ones((H, S)) * [[9], [4]], "gamma": 3},
    "planning.plan": lambda: {"mdp": MDP, "gamma": 10.0, "weights": np.ones((S, A)), "start": omg.plan(MDP, 9.0)},
    "planning.plan_many": lambda: {"mdps": [MDP, MDP], "gamma": 10.0, "tolerance": 1e-6, "workers": 1},
    "oracles.AggregateDynamics": lambda: {"oracles": [pair()["dynamics_oracle"] for _ in range(2)], "horizon": H},
    "oracles.AggregateRewards": lambda: {"oracles": [pair()["reward_oracle"] for _ in range(2)], "horizon": H},
    "oracles.BasisDynamics": lambda: {**SIZES, "bases": D, "features": None, "rate": "guarded", "support": None},
    "oracles.CountDynamics": lambda: {**SIZES, "contexts": LABELS, "rate": "proven", "prior": 0.5, "support": None},
    "oracles.CountRewards": lambda: {**SIZES, "contexts": LABELS, "rate": "guarded"},
    "oracles.CopiesDynamics": lambda: {"oracle": pair()["dynamics_oracle"], "delay": 2},
    "oracles.CopiesRewards": lambda: {"oracle": pair()["reward_oracle"], "delay": 2},
    "oracles.EpochRewards": lambda: {"oracle": oracles.OfflineFiniteRewards(REWARDS, horizon=H)},
    "oracles.FeatureMap": lambda: {
        "columns": oracles.FeatureMap.fit(RECORDS).columns,
        "crosses": [("age", "ward")],
    },
    "oracles.FiniteDynamics": lambda: {**KERNEL_CLASS, "rate": "guarded", "smoothing": 0.01, "support": None},
    "oracles.FiniteRewards": lambda: {**MADE, "rate": "proven", "delay": 2},
    "oracles.KnownDynamics": lambda: {"function": KERNELS["a"][0], "horizon": H},
    "oracles.KnownRewards": lambda: {"function": REWARDS["a"][0], "horizon": H},
    "oracles.LinearRewards": lambda: {
        **{**SIZES, "dimension": S * A, "features": lambda context: np.eye(S * A).reshape(S, A, -1), "shared": True},
        **{"rate": "guarded", "ridge": 1.0, "feature_norm": 1.0, "intercept": True},
    },
    "oracles.LogLossRewards": lambda: {**MADE, "rate": "proven"},
    "oracles.OfflineFiniteDynamics": lambda: {**KERNEL_CLASS, "smoothing": 0.01, "support": None},
    "oracles.OfflineFiniteRewards": lambda: dict(MADE),
    "oracles.OfflineLeastSquaresDynamics": lambda: dict(KERNEL_CLASS),
    "oracles.ProductRewards": lambda: {**MADE, **CONTEXTS, "states": S, "functions": 4, "rate": "guarded"},
    "oracles.SoftmaxDynamics": lambda: {
        **{**LINEAR, "features": None, "rate": "guarded", "intercept": False},
        **{"support": np.ones((S, A, S), dtype=bool), "base": np.full((S, A, S), 1.0 / S)},
    },
    "oracles.StepwiseDynamics": lambda: {"oracles": [one_step_dynamics() for _ in range(H)]},
    "oracles.StepwiseRewards": lambda: {"oracles": [one_step_rewards() for _ in range(H)]},
    "oracles.RefittedDynamics": refitted_model("Dynamics"),
    "oracles.RefittedRewards": refitted_model("Rewards"),
    "rivals.FALCON": bandit(lambda: oracles.OfflineFiniteRewards(REWARDS, horizon=1)),
    "rivals.FastCB": bandit(lambda: oracles.LogLossRewards(REWARDS, horizon=1)),
    "rivals.AdaCB": bandit(lambda: oracles.OfflineFiniteRewards(REWARDS, horizon=1), gamma=20.0, radius=0.5),
    "rivals.EpochGreedy": bandit(one_step_rewards, scale=2.0),
    "rivals.ILTCB": bandit(one_step_rewards, **CONTEXTS, scale=0.1, psi=10.0, delta=0.1),
    "rivals.RegCB": bandit(one_step_rewards, radius=0.5, optimistic=False),
    "rivals.RegressorElimination": bandit(one_step_rewards, **CONTEXTS, radius=0.5),
    "rivals.UCCB": bandit(one_step_rewards, **CONTEXTS, scale=0.1),
    "rivals.SquareCB": bandit(one_step_rewards),
    "rivals.GLMORL": lambda: dict(GLM),
    "rivals.GLMRLSVI": lambda: {**GLM, "seed": 1},
    "rivals.OLIVE": model_agent(finite, epsilon=0.1, delta=0.1, evaluations=2, rollouts=2, threshold=0.1),
    "rivals.WitnessRank": model_agent(finite, epsilon=0.1, delta=0.1, evaluations=2, rollouts=2, threshold=0.1),
    "agents.OMG": model_agent(finite, gamma="adaptive", episodes=100, delta=0.1, seed=1),
    "rivals.PCIGW": model_agent(gamma=20.0, seed=1),
    "rivals.RLSVI": cells(scale=0.1, seed=1),
    "rivals.RMUCDD": model_agent(contexts=LABELS, scale=0.1, episodes=100),
    "rivals.UC3RL": model_agent(contexts=LABELS, scale=0.1, episodes=100),
    "rivals.UCBVI": lambda: {"space": SPACE, "cover": rivals.PerContext(), "scale": 1.0, "delta": 0.1, **RANGES},
    "rivals.MVP": cells(scale=0.1, constants=(3.4, 2.0, 17.0), delta=0.1),
    "rivals.UCBVIBF": cells(scale=0.1, constants=(8.0, 4.0, 1e4), delta=0.1),
    "rivals.Clipped": model_agent(**LIMITS),
    "rivals.LagrangianGreedy": model_agent(step=0.1, cover=rivals.PerContext(), **LIMITS),
    "rivals.OptCMDP": cells(scale=0.1, delta=0.1, **LIMITS),
    "rivals.OptPess": cells(scale=0.1, delta=0.1, **LIMITS),
    "rivals.OptPrimalDual": cells(scale=0.1, delta=0.1, policy_step=0.5, price_step=0.1, **LIMITS),
    "rivals.VIDS": model_agent(draws=4, seed=1),
    "agents.Anytime": lambda: {"delta": 0.1},
    "rivals.Boltzmann": model_agent(gamma=2.0),
    "rivals.CoverRmax": lambda: {"space": SPACE, "cover": rivals.PerContext(), "visits": 2, **RANGES},
    "rivals.ERMReduction": model_agent(samples=2),
    "agents.EpsilonGreedy": model_agent(epsilon=0.1),
    "rivals.FeelGoodThompson": model_agent(finite, optimism=0.1, seed=1),
    "agents.Accounted": lambda: {"rule": omg.agents.GainWeighted(draws=4), "delta": 0.1},
    "agents.GainWeighted": lambda: {"draws": 4, "floor": 0.01, "seed": 1},
    "agents.Greedy": model_agent(),
    "agents.Informed": lambda: {"space": SPACE, "mdp": WORLD.mdp, **RANGES},
    "rivals.KWIKRmax": lambda: {"space": SPACE, "dimension": D, "features": None, "threshold": 0.1, **RANGES},
    "rivals.OccupancyEntropy": model_agent(gamma=2.0),
    "rivals.PerBall": lambda: {"radius": 0.5},
    "agents.PosteriorSampling": model_agent(seed=1),
    "agents.Power": lambda: {"scale": 2.0, "exponent": 0.5},
    "rivals.RegularisedIDS": model_agent(worth=2.0, draws=4, seed=1),
    "agents.Schedule": lambda: {"given": 2.0, "name": "gamma"},
    "agents.Theory": lambda: {"episodes": 100, "delta": 0.1},
    "agents.UncertaintyWeighted": lambda: {"kappa": 0.1, "floor": 0.01},
    "agents.Uniform": lambda: {"space": SPACE, **RANGES},
    "worlds.Arms": lambda: {"actions": 3, "reward_class_size": 4, **WORLD_OPTIONS},
    "worlds.CombinationLock": lambda: {"states": 4, "actions": 3, "slip": 0.1, **WORLD_OPTIONS},
    "worlds.ContextualBandit": lambda: {"actions": 3, "dimension": D, "reward_class_size": 4, **WORLD_OPTIONS},
    "worlds.Corridor": lambda: {"states": 5, "actions": 2, "horizon": 4, "slip": 0.1, **WORLD_OPTIONS},
    "worlds.Decoy": lambda: {"states": 3, "actions": 3, "horizon": 3, "good_share": 0.5, **WORLD_OPTIONS},
    "worlds.DeepSea": lambda: {"states": 3, "slip": 0.1, "class_size": 4, **WORLD_OPTIONS},
    "worlds.LinearWorld": lambda: {**LINEAR, "reward_class_size": 4, "transition_class_size": 4, **WORLD_OPTIONS},
    "worlds.LongDecoy": lambda: {"horizon": 4, "reward_class_size": 4, **WORLD_OPTIONS},
    "worlds.LowerBound": lambda: {**SIZES, "episodes": 100, **WORLD_OPTIONS},
    "worlds.Maintenance": lambda: {"hours": 2.0, "parts": 0.5, "horizon": 3, **WORLD_OPTIONS},
    "worlds.NoisyRoom": lambda: {"states": 4, "horizon": 3, "exit": 0.1, **WORLD_OPTIONS},
    "worlds.Reminders": lambda: {"budget": 1.0, "horizon": 3, **WORLD_OPTIONS},
    "worlds.RiverSwim": lambda: {"states": 4, "horizon": 4, "transition_class_size": 4, **WORLD_OPTIONS},
    "worlds.SideEffects": lambda: {"budget": 0.5, "horizon": 3, **WORLD_OPTIONS},
    "worlds.SoftmaxWorld": lambda: {**LINEAR, "weight_norm": 2.0, "reward_class_size": 4, **WORLD_OPTIONS},
    "worlds.TreatmentTrial": lambda: {"horizon": 2, "context_count": 3, "misspecification": 0.1, "seed": 1},
    "worlds.WorldEnv": lambda: {"world": worlds.CombinationLock(states=4)},
    "environments.from_gymnasium": lambda: {
        "make": "FrozenLake-v1",
        "contexts": [0.5, 0.9],
        "arguments": "success_rate",
        "horizon": 4,
        "reward_range": (0.0, 1.0),
        "tables": True,
    },
    "environments.gymnasium_space": lambda: {"env": lake().env.open(0.5), "horizon": 4, "start": 0},
    "adversaries.IID": lambda: dict(CONTEXTS),
    "adversaries.NeverTwice": lambda: dict(CONTEXTS),
    "adversaries.Sequence": lambda: dict(CONTEXTS),
    "adversaries.Sorted": lambda: {**CONTEXTS, "episodes": 10},
    "adversaries.WorstRegret": lambda: {**CONTEXTS, "look": 1},
    "delays.Fixed": lambda: {"episodes": 3},
    "delays.Geometric": lambda: {"mean": 3.0},
    "delays.HeavyTailed": lambda: {"exponent": 1.5, "scale": 2.0},
    "delays.Reversed": lambda: {"most": 4},
    "delays.UpTo": lambda: {"most": 4},
    "runs.Run": lambda: {
        "environment": WORLD,
        "adversary": adversaries.IID(LABELS),
        "agent": an_agent(),
        "seed": 1,
        "delay": 1,
        "observe": None,
    },
    "runs.simulate": lambda: {**EXAMPLES["runs.Run"](), "episodes": 2},
    "runs.advise": lambda: {"agent": an_agent(), "context": "a", "steps": [0], "states": [0, 1], "seed": 1},
    "runs.play": lambda: {
        "env": lake(),
        "agent": lake_agent(),
        "contexts": [0.5, 0.9],
        "log": None,
        "overwrite": False,
        "seed": 1,
        "observe": None,
    },
    "loading.load": lambda: {"path": a_file(an_agent())},
    "omg_lab.sample_complexity": lambda: {"ledger": INSTANCES["runs.Ledger"](), "epsilon": 0.1, "window": 2},
    "runs.shortfall": lambda: {
        "world": (world := lake(tables=False)),
        "log": omg.play(world, lake_agent(), [0.5, 0.9]),
        "policies": {"greedy": lake_agent().policy},
        "rollouts": 4,
        "confidence": 0.9,
        "seed": 1,
    },
    "omg_lab.compare": lambda: {
        **{"environment": WORLD, "contexts": LABELS, "agents": {"a": "greedy", "b": omg.OMG}},
        **{"episodes": 2, "seeds": 1, "adversary": "iid"},
    },
    "logs.Log": lambda: {
        **{"space": SPACE, "episodes": a_log().episodes, "reward_range": (0.0, 1.0)},
        **{"state_names": list(range(SPACE.states)), "action_names": list(range(SPACE.actions))},
    },
    "logs.doubly_robust": lambda: {
        "log": a_log(),
        "policy": lambda _: UNIFORM,
        "model": WORLD.mdp,
        "weighted": False,
    },
    "logs.estimate_propensities": lambda: {
        **{"log": a_varied_log(), "model": None, "features": lambda _: np.ones(1), "folds": 2, "seed": 1},
    },
    "logs.improvement": lambda: {
        **{"log": a_varied_log(), "policy": lambda _: UNIFORM, "features": lambda _: np.ones(1), "seed": 1},
    },
    "logs.importance_sampling": lambda: {"log": a_log(), "policy": lambda _: UNIFORM, "weighted": True},
    "logs.read_export": lambda: {"frame": an_export(), "space": SPACE, "reward_range": (0.0, 1.0)},
    "logs.read_log": lambda: {
        "path": a_log().write(pathlib.Path("log.jsonl").resolve()),
        "space": SPACE,
        "reward_range": (0.0, 1.0),
    },
    "logs.read_table": lambda: {
        **{"frame": a_log().table(), "space": SPACE, "context": "context", "reward_range": (0.0, 1.0)},
        **{"person": "episode", "step": "step", "state": "state", "action": "action", "reward": "reward"},
        **{"propensity": "propensity", "next_state": "next_state", "terminated": None},
        **{"states": list(range(SPACE.states)), "actions": list(range(SPACE.actions))},
    },
    "logs.FeatureRanking": lambda: {"suggestions": ()},
    "logs.suggest_features": lambda: {"log": a_log(count=40), "folds": 2, "seed": 1},
    "logs.warm_start": lambda: {"agent": an_agent(), "log": a_log()},
    "theory.RegretCeiling": lambda: {"agent": an_agent(), "delta": 0.1, **pair()},
    "theory.Assumptions": lambda: {**GIVEN, "tuples": 12},
    "audit.Audit": dict,
    "audit.combine": lambda: {"runs": some_rows(), "delta": 0.1},
    "theory.bounds.as_printed": lambda: {"given": theory.Assumptions(**GIVEN), "gamma": 2.0, "exact": True},
    "theory.bounds.corrected": lambda: {"given": theory.Assumptions(**GIVEN), "gamma": 2.0, "certificate": 0.01},
    "theory.bounds.anytime": lambda: {"given": theory.Assumptions(**GIVEN)},
    "theory.bounds.known_dynamics_round": lambda: {"tuples": 9, "horizon": 2, "gamma": 2.0, "squared_error": 0.1},
    "theory.bounds.known_dynamics": lambda: {"tuples": 9, "horizon": 2, "episodes": 10, "reward_error": 0.1},
    "theory.bounds.accounted": lambda: {"tuples": 9, "horizon": 2, "episodes": 10, "error": 0.1},
    "theory.bounds.with_floor": lambda: {"tuples": 9, "episodes": 10, "floor": 1.0, "estimation": 4.0},
    "theory.errors.reward_error": lambda: {"horizon": 2, "delta": 0.1, "reward_regret": 1.0},
    "theory.errors.dynamics_error": lambda: {"horizon": 2, "delta": 0.1, "dynamics_regret": 1.0},
    "theory.errors.estimation": lambda: {"horizon": 2, **ERRORS},
    "theory.errors.value_error": lambda: {"horizon": 2, "episodes": 10, **ERRORS},
    "theory.errors.iterates_bound": lambda: {"certificate": 0.5},
    "checks.challenge": lambda: {
        "oracle": pair()["reward_oracle"],
        "contexts": ["a"],
        "episodes": 2,
        "horizon": H,
        "outcomes": "against",
        "visits": "one pair",
        "generator": np.random.default_rng(0),
        "delay": 1,
    },
    "checks.check_agent": lambda: {"agent": an_agent(), **CONTEXTS},
    "checks.check_oracle": lambda: {"oracle": pair()["reward_oracle"], **CONTEXTS, "horizon": H},
    **trials.EXAMPLES,
}


def of_rival(kind):
    """Return an example of a rival: its defaults, and what its `for_world` gives it."""
    world = world_for(ONE_STEP if ".bandits." in kind.__module__ else SPACE)

    def example():
        with mock.patch("omg_cmdp.agents.agent.build_for", arguments_for):
            return {**arguments_of(kind), **RANGES, **kind.for_world(world)}

    return example


for _name, _kind in vars(rivals).items():
    if inspect.isclass(_kind) and issubclass(_kind, omg.Agent):
        EXAMPLES.setdefault(f"rivals.{_name}", of_rival(_kind))  # so that a new rival needs no line here

REASONS = {
    "worlds.ACTG175": "a package's table, slow to read, behind integers that are checked as in every world",
    "worlds.Classification": "the same",
    "worlds.ICUSepsis": "the same: 716 states",
    "worlds.ReducedSepsis": "the same",
    "environments.TableWorld": "made by `from_gymnasium`; its methods are called",
    "environments.SampledWorld": "the same",
    "omg_lab.Comparison": "made by `compare`; its methods are called",
    "planning.Solution": "a record that `plan` makes, and that checks nothing",
    "logs.Suggestion": "a record that `suggest_features` makes, and that checks nothing",
    "logs.Improvement": "a record that `improvement` makes, and that checks nothing; its methods are called",
    "logs.Overlap": "a record that `estimate_propensities` makes, and that checks nothing",
    "logs.Estimate": "a record that estimators make, and that checks nothing; its methods are called",
    "audit.Statement": "a record of the catalogue, and that checks nothing",
    "audit.AuditRow": "a record that an audit makes, and that checks nothing",
    "audit.Summary": "a record that `combine` makes, and that checks nothing",
    "checks.Challenge": "a record that `challenge` makes, and that checks nothing",
    "runs.Ledger": "made by a run; its methods are called",
    "runs.Advice": "a record that `advise` makes, and that checks nothing; its methods are called",
    "rivals.Blind": "made without arguments; its methods are called",
    "rivals.PerContext": "the same",
    **trials.REASONS,
}
"""Why a name has no example here."""

INSTANCES = {
    "environments.TableWorld": lake,
    "environments.SampledWorld": lambda: lake(tables=False),
    "omg_lab.Comparison": lambda: omg_lab.compare(WORLD, LABELS, ["greedy"], episodes=2, seeds=1),
    "runs.Ledger": lambda: omg.simulate(WORLD, adversaries.IID(LABELS), an_agent(), 2),
    "runs.Advice": lambda: omg.advise(an_agent(), "a"),
    "rivals.Blind": rivals.Blind,
    "rivals.PerContext": rivals.PerContext,
    "logs.Improvement": lambda: omg.logs.improvement(a_varied_log(), lambda _: UNIFORM),
    "logs.Estimate": lambda: omg.logs.importance_sampling(a_log(count=40), lambda _: UNIFORM),
    "agents.Mixture": lambda: agents.Mixture(np.stack([UNIFORM] * 2), np.array([0.5, 0.5])),
    "agents.Situation": lambda: a_situation(),
    **trials.INSTANCES,
}
"""How objects are made whose constructor has no example, or does not make what methods need."""


def a_situation():
    return agents.Situation(
        episode=3,
        known=keyed("a"),
        model=MDP,
        **_told(finite()),
        tuples=8,
        tolerance=1e-6,
        bounds=value_bounds(H),
    )


def _told(oracles_):
    """Return the oracles after they were asked: a finite class is of unknown size before, and its bound inf."""
    for oracle in oracles_.values():
        oracle.predict("a")
    return oracles_


def a_row():
    return Row(*[math.nan] * len(Row._fields))


def a_file(instance):
    """Return the path of a file that `instance` has saved."""
    path = pathlib.Path("saved.npz").resolve()
    instance.save(path)
    return path
