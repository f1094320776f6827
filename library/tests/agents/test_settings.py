"""A state is refused by an agent with another value of any argument, or the argument is proven harmless.

Which arguments there are is found by introspection: a new one without another value here fails.
"""

import inspect

import pytest

from library.tests.agents.catalogue import KINDS, MASK, ORACLES, SIZE, SPACES
from library.tests.agents.models import an_episode
from library.tests.varying import another, flat_call, numeric_arguments
from omg_cmdp import OMG, Agent, Space, agents, oracles
from omg_cmdp.agents import ExplorationRule, GainWeighted, Power, Schedule
from omg_cmdp.agents.building import arguments_of

HARMLESS = {
    **dict.fromkeys(
        [(kind, "delta") for kind in ("float", "callable", "uncertainty weighted", "schedule, episodes")],
        "only rules with a theorem, by name, have a probability",
    ),
    **dict.fromkeys(
        [(kind, "seed") for kind, line in KINDS.items() if line.made is OMG and kind != "adaptive"],
        "only the adaptive rule draws",
    ),
}
"""Arguments that a state need not share, with the reason."""


OF_BUDGETS = ("costs", "budgets", "cost_range", "total_budget", "cautious", "safe_policy")
"""Arguments that mean something only with others of them."""


def numbers_of(lines):
    """Return (kind, argument) for every argument of these agents that may be a number."""
    return [
        (kind, each) for kind, line in lines.items() for each in numeric_arguments(line.made) if each not in OF_BUDGETS
    ]


def refuses_another_number(line, parts, argument):
    """Return whether a state of the agent with another number is refused; None if no other number is accepted."""
    call = flat_call(line.made, *parts, *line.arguments, **line.named)
    other = another(line.made, call, argument, call.get(argument, numeric_arguments(line.made)[argument]))
    if other is None:
        return None
    try:
        line.made(**call).load_state(other.state())
    except ValueError as error:
        return "`state`" in str(error)
    return False


@pytest.mark.parametrize(("kind", "argument"), numbers_of(KINDS))
def test_a_state_of_an_agent_with_another_number_is_refused(kind, argument):
    refused = refuses_another_number(KINDS[kind], (SPACES["plain"], *ORACLES["finite"][1]()), argument)
    assert refused is ((kind, argument) not in HARMLESS)


@pytest.mark.parametrize(("kind", "argument"), HARMLESS)
def test_a_harmless_argument_changes_nothing(kind, argument, rng):
    """Two agents with different numbers play the same to the bit."""
    line, parts = KINDS[kind], (lambda: (SPACES["plain"], *ORACLES["finite"][1]()))
    call = flat_call(line.made, *parts(), *line.arguments, **line.named)
    other = another(line.made, call, argument, call.get(argument, numeric_arguments(line.made)[argument]))
    agent = line.made(**flat_call(line.made, *parts(), *line.arguments, **line.named))
    for _ in range(10):
        policy = agent.policy("a")
        assert policy.tobytes() == other.policy("a").tobytes()
        episode = an_episode(rng, agent.space, "a", policy)
        agent.update(episode)
        other.update(episode)


def rules():
    """Return every exploration rule with another number in one of its arguments, beside the rule itself."""
    found = []
    for kind in vars(agents).values():
        if isinstance(kind, type) and issubclass(kind, ExplorationRule) and not inspect.isabstract(kind):
            call = {"Schedule": {"given": 5.0}, "Theory": {"episodes": 99, "delta": 0.1}, "Anytime": {"delta": 0.1}}
            call = call.get(kind.__name__, {})
            for argument, default in numeric_arguments(kind).items():
                found.append((kind(**call), another(kind, call, argument, call.get(argument, default))))
    return found


FUNCTIONS = [(lambda t: 10.0 * t, lambda t: 10.5 * t), (lambda t: 9.0, lambda t: 9.0 + (t == 64)), (5.0, lambda t: 5.5)]
FUNCTIONS += [(Power(1.0, 0.5), Power(1.0, 0.6)), (Power(1.0, 0.5), Power(1.1, 0.5))]
OTHER = {
    "space": [
        (SPACES["plain"], Space(**SIZE | changed))
        for changed in (
            {"start": 1},
            {"start": [0.5, 0.5, 0.0]},
            {"admissible": MASK},
        )
    ],
    "reward_oracle": [(ORACLES["finite"][1]()[0], oracles.CountRewards(**SIZE))],
    "dynamics_oracle": [(ORACLES["finite"][1]()[1], oracles.CountDynamics(**SIZE))],
    "gamma": [*rules(), *FUNCTIONS, ("adaptive", "uncertainty"), ("adaptive", 5.0), (GainWeighted(), 5.0)],
    "epsilon": FUNCTIONS,
    "reward_range": [((0.0, 1.0), (0.0, 2.0)), ((0.0, 1.0), (-1.0, 1.0))],
    "return_range": [(None, (0.0, 2.0)), ((0.0, 2.0), (1.0, 2.0))],
}
"""Pairs of values that differ, for arguments that are more than numbers."""
ELSEWHERE = {
    "mdp": "the table of `Informed` is that of its known oracles, whose tests vary it",
    **dict.fromkeys(OF_BUDGETS, "they come together: test_budgets.py varies them"),
}
AGENTS = [
    kind
    for kind in vars(agents).values()
    if isinstance(kind, type)
    and issubclass(kind, Agent)
    and not inspect.isabstract(kind)
    and kind.__name__ != "Informed"
]
PAIRS = [
    (kind, argument, place)
    for kind in AGENTS
    for argument in arguments_of(kind)
    for place in range(len(OTHER.get(argument, ())))
]


@pytest.mark.parametrize("kind", [*AGENTS, agents.Informed], ids=lambda kind: kind.__name__)
def test_every_argument_is_varied(kind):
    assert set(arguments_of(kind)) <= {*OTHER, *ELSEWHERE, *numeric_arguments(kind)}


@pytest.mark.parametrize(("kind", "argument", "place"), PAIRS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_state_of_an_agent_with_another_value_is_refused(kind, argument, place):
    rewards, dynamics = ORACLES["finite"][1]()
    call = {"space": SPACES["plain"], "reward_oracle": rewards, "dynamics_oracle": dynamics}
    call = {name: value for name, value in call.items() if name in arguments_of(kind)}
    one, other = (kind(**call | {argument: value}) for value in OTHER[argument][place])
    before = {name: array.tobytes() for name, array in one.state().items()}
    with pytest.raises(ValueError, match="`state` must"):
        one.load_state(other.state())
    assert {name: array.tobytes() for name, array in one.state().items()} == before
    one.load_state(kind(**call | {argument: OTHER[argument][place][0]}).state())


def test_the_file_says_what_it_cannot_tell(tmp_path):
    class Own(ExplorationRule):
        def __init__(self, function):
            self.function = function

        def decide(self, situation):
            return situation.plan(self.function(situation.episode))

    agent = OMG(SPACES["plain"], *ORACLES["counts"][1](), Own(lambda t: 5.0))
    with pytest.warns(UserWarning, match=r"agent: gamma Own\(function=[0-9a-f]{16}\?\) cannot be checked when"):
        agent.save(tmp_path / "agent")
    assert Schedule(lambda t: 5.0).given(1) == 5.0
    OMG(SPACES["plain"], *ORACLES["counts"][1](), lambda t: 5.0).save(tmp_path / "agent")  # compared by its values
