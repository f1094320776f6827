"""All estimates of one policy's value side by side, and what to believe.

Of the estimates that the log supports, the one with the most effective episodes is believed. Those that take something
for linear in features come last, and of these the doubly robust one first: what it takes for linear is corrected by the
model. Where propensities show that the log's policy changed as it was played, fitted Q is not supported; where they
cannot tell, the verdict says what it assumes. The choice does not look at values or intervals: the narrowest of several
intervals is too narrow. If two of them have no number in common an assumption fails, and none is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.direct import fitted, modelled
from omg_cmdp.logs.off_policy.estimate import Estimate, Support
from omg_cmdp.logs.off_policy.marginal import marginal
from omg_cmdp.logs.off_policy.regression import Features
from omg_cmdp.logs.off_policy.sampling import sampled
from omg_cmdp.logs.off_policy.steps import LoggedSteps, Model, Policy, UnfitLogError
from omg_cmdp.validation import probability

if TYPE_CHECKING:
    import pandas

ROBUST, MODEL = "marginal doubly robust", "the model's own"
FITTED = "fitted Q"
LINEAR = "It takes something for linear in the features."
UNCHANGING = "It assumes that whoever played the log did not learn from it."


class Evaluation(NamedTuple):
    """All estimates of a policy's value, by name; as text, a table and what to believe. `evaluate` makes it.

    Parameters
    ----------
    estimates : mapping of str to Estimate
        The estimates; of equally good ones the first is believed.
    refused : mapping of str to str
        Why the other estimators could not be used.
    linear : frozenset of str
        Names of the estimators that take something for linear in the features.
    level : float
        The confidence of the intervals.
    intervals : mapping of str to pair of float
        The interval of each estimate.
    changed : bool, optional
        Whether the propensities show that the log's policy changed as it was played; None if they cannot tell.

    Examples
    --------
    >>> nothing = Evaluation({}, {"fitted Q": "no episodes"}, frozenset(), 0.95, {})
    >>> nothing.advice
    'Believe none of them: the log cannot be used.'
    """

    estimates: Mapping[str, Estimate]
    refused: Mapping[str, str]
    linear: frozenset[str]
    level: float
    intervals: Mapping[str, tuple[float, float]]
    changed: bool | None = None

    def table(self) -> pandas.DataFrame:
        """Return a row for every estimator: value, standard error, interval, effective sample size and support."""
        import pandas

        columns = ["value", "standard_error", "low", "high", "effective_sample_size", "support"]
        rows = {}
        for name, each in self.estimates.items():
            support = " ".join([each.support.value, *self._caveats(name)])
            rows[name] = (each.value, each.standard_error, *self.intervals[name], each.effective_sample_size, support)
        rows |= {name: (*(float("nan"),) * 5, reason) for name, reason in self.refused.items()}
        return pandas.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("estimator")

    @property
    def supported(self) -> list[str]:
        """Names of the estimates that the log supports, the one to believe first."""
        good = [name for name, each in self.estimates.items() if each.support is Support.GOOD]
        return sorted(good, key=lambda name: (self._trust(name), -self.estimates[name].effective_sample_size))

    def _trust(self, name: str) -> int:
        return 0 if name not in self.linear else 1 if name == ROBUST else 2

    def _caveats(self, name: str) -> list[str]:
        """Return what an estimate assumes and the log does not show."""
        linear, unknown = name in self.linear, name == FITTED and self.changed is None
        return [LINEAR] * linear + [UNCHANGING] * unknown

    @property
    def contradiction(self) -> tuple[str, str] | None:
        """Two supported estimates whose intervals have no number in common; None if there are none."""
        if not self.supported:
            return None
        lower = min(self.supported, key=lambda name: self.intervals[name][1])
        upper = max(self.supported, key=lambda name: self.intervals[name][0])
        return (lower, upper) if self.intervals[lower][1] < self.intervals[upper][0] else None

    @property
    def advice(self) -> str:
        """The estimate to believe, in plain sentences."""
        if self.contradiction is not None:
            one, other = self.contradiction
            return (
                f"Believe none of them: {one} and {other} contradict each other. Propensities may be wrong, the state"
                " may not say all that matters, or what is taken for linear in the features is not."
            )
        own = self.estimates.get(MODEL)
        if not self.supported:
            checked = [name for name, each in self.estimates.items() if each is not own]
            if not checked:
                return "Believe none of them: the log cannot be used."
            name = max(checked, key=lambda name: self.estimates[name].effective_sample_size)
            best = self.estimates[name]
            return (
                f"Believe none of them. The most episodes, {best.effective_sample_size:.0f}, count for {name}, but:"
                f" {best.support.value} Log a policy nearer to this one, or value one nearer to the log."
            )
        name = self.supported[0]
        best, (low, high) = self.estimates[name], self.intervals[name]
        said = (
            f"Believe {name}: {best.value:.4g}, between {low:.4g} and {high:.4g} at {100 * self.level:g} %;"
            f" {best.effective_sample_size:.0f} episodes count."
        )
        said = " ".join([said, *self._caveats(name)])
        if own is not None and not low <= own.value <= high:
            said += f" The model's own value, {own.value:.4g}, is outside: do not believe it."
        return said

    def __str__(self) -> str:
        return f"{self.table().round(2).to_string()}\n\n{self.advice}"


def evaluate(
    log: Log,
    policy: Policy,
    *,
    model: Model | None = None,
    features: Features | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Return every estimate of a policy's value that a log allows, with intervals.

    Parameters
    ----------
    log : Log
        Episodes from which neither the policy nor the model learned.
    policy : callable
        context -> (H, S, A), such as `agent.policy`.
    model : callable, optional
        context -> TabularMDP, such as `agent.model`, whose [0, 1] stands for the log's `reward_range`; it adds the
        doubly robust estimates and the model's own value.
    features : callable, optional
        context -> (d,), numbers of the size of 1 without a constant, by which marginal and fitted estimates share
        between contexts what they learn; without, contexts must come again for these to be of use.
    level : float, default 0.95
        The confidence of the intervals, in (0, 1).
    seed : int, default 0
        The seed of the bootstrap.

    Examples
    --------
    >>> from omg_cmdp import Episode, Space
    >>> arms = {"context": "c", "states": [0, 0], "propensities": [0.5]}
    >>> episodes = [Episode(**arms, actions=[t % 2], rewards=[t % 2]) for t in range(120)]
    >>> log = Log(Space(states=1, actions=2, horizon=1), episodes)
    >>> evaluate(log, lambda context: [[[0.2, 0.8]]]).supported[0]
    'fitted Q'
    """
    level, plain = probability("level", level), LoggedSteps(log, policy)
    made: dict[str, Callable[[], Estimate]] = {FITTED: lambda: fitted(plain, features)}
    if model is not None:
        around = LoggedSteps(log, policy, model)
        made |= {
            "doubly robust": lambda: sampled(around, weighted=False),
            ROBUST: lambda: marginal(around, features),
            "doubly robust, weighted": lambda: sampled(around, weighted=True),
            MODEL: lambda: modelled(around),
        }
    made |= {
        "importance sampling": lambda: sampled(plain, weighted=False),
        "marginal sampling": lambda: marginal(plain, features),
        "importance sampling, weighted": lambda: sampled(plain, weighted=True),
    }
    estimates, refused = {}, {}
    for name, make in made.items():
        try:
            estimates[name] = make()
        # Only what the log lacks; an error in the policy or model is the caller's, and raised.
        except UnfitLogError as reason:
            refused[name] = str(reason)
    linear = frozenset(name for name in estimates if features is not None and name.startswith(("fitted", "marginal")))
    intervals = {name: each.interval(level, seed=seed) for name, each in estimates.items()}
    return Evaluation(estimates, refused, linear, level, intervals, plain.policy_changed())
