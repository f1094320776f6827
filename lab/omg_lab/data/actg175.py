"""ACTG 175: a trial of four treatments of HIV (Hammer et al., 1996), as a world with two decisions.

The patients are real: 2139 of them, randomised to four arms, with covariates at enrolment and counts of CD4 cells after
20 and 96 weeks (the table that the package `lifelines` ships). The tables of the world are *fitted* to them, and the
world is no better than the fit; it makes no clinical claim.

States       0 enrolled; 1..4 the stratum of the CD4 count at week 20, below 200, 350, 500, and above; 5..8 the same at
             week 96; 9 lost, no count at week 96 (37 %). Episodes start in 0.
Actions      0 zidovudine, 1 zidovudine and didanosine, 2 zidovudine and zalcitabine, 3 didanosine. In states 5..9 there
             is nothing left to choose, and only action 0 is admissible.
Horizon      H = 3: the arm until week 20, the arm from then on, and the last count.
Contexts     2139 patients, 15 covariates each, standardised: `COVARIATES`.
Transitions  To week 20: softmax(b + B·c + β_a) over 4 strata. To week 96: softmax(b' + B'·c + σ_s + β'_a) over 4 strata
             and lost, s the stratum at week 20.
Rewards      0, ⅓, ⅔, 1 by the stratum, at week 20 and at week 96; 0 if lost, as where missing counts as failure. Known,
             and without noise.
Class        8 fits: that to all patients, which is the truth, and 7 to resamples of them.
Dial         none: how wrong the model is for these patients is unknown.

What the data support, by ten-fold cross-validation of the log loss, in nats per patient (as the tests repeat). The
penalties were chosen on the same folds, among seven values each, which flatters the smallest differences a little.

- Covariates predict: 1.265 → 1.038 at week 20, 1.507 → 1.357 at week 96, where the stratum at week 20 is one of them.
- Arms matter until week 20, by .017 ± .004. Given the count at week 20 they hardly matter any more (.0001 ± .0008):
  cross-validation shrinks their effects on week 96 by more than half.
- No product of an arm and a covariate is supported: whatever the penalty, products lower the loss by .0005 at most, and
  by less than two standard errors. The model has none. So at each decision one arm is best here for nearly everyone: 1
  for all but 3 patients, and after week 20 arm 2, for 86 %. The little that the context gains comes from the shape of
  the softmax and is no finding. A gap computed in this world is in-sample: never report it.

What is assumed. Arms are as assigned (intention to treat; 36 % left theirs early). The second decision was never
randomised: everybody kept the arm. A policy that gives one arm throughout is worth about what the trial saw. Of one
that changes at week 20 the world says what would follow if the earlier arm had left no trace but the count: an
assumption that no patient of the trial can confirm. The optimum is such a policy: V* is .907 on average, against .895
for arm 1 throughout, and the difference rests on that assumption and on effects that cross-validation does not see.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, frozen, seed_number
from omg_lab.data.multinomial import fit
from omg_lab.data.packaged import packaged_file
from omg_lab.worlds.base import Noiseless, softmax, vector

if TYPE_CHECKING:
    import pandas

ARMS = ("zidovudine", "zidovudine + didanosine", "zidovudine + zalcitabine", "didanosine")
STRATA = (200, 350, 500)
"""CD4 cells per mm³, where a stratum ends and the next begins."""

COVARIATES = (
    *("age", "wtkg", "hemo", "homo", "drugs", "karnof", "oprior", "z30"),
    *("preanti", "race", "gender", "str2", "symptom", "cd40", "cd80"),
)
"""The columns of the table that make the context; the days of earlier therapy and CD8 cells by their logarithm."""

LOGARITHMS = ("preanti", "cd80")
WEEK_20, WEEK_96, LOST = 1, 5, 9
QUALITY = np.array([0.0, *np.tile(np.arange(4) / 3.0, 2), 0.0])


class Regression(NamedTuple):
    """The regression of one stage: its columns are a constant, covariates, the stratum at week 20 if known, arms."""

    design: FloatArray
    outcomes: NDArray[np.int64]
    penalties: FloatArray
    """Chosen by cross-validation among 1, 3, 10, 30, 100, 300 and 1000, for the arms apart."""


def patients() -> pandas.DataFrame:
    """Return the table of the trial, one row per patient, from the files of the package `lifelines`.

    The package itself is not imported.
    """
    import pandas

    return pandas.read_csv(packaged_file("lifelines", "ACTG175.csv", extra="actg175"), index_col=0)


def covariates(table: pandas.DataFrame) -> FloatArray:
    """Return the contexts (n, 15), each column with mean 0 and deviation 1."""
    columns = [np.log1p(table[name]) if name in LOGARITHMS else table[name] for name in COVARIATES]
    raw = np.stack(columns, axis=1).astype(np.float64)
    return np.asarray((raw - raw.mean(axis=0)) / raw.std(axis=0))


def stages(table: pandas.DataFrame) -> tuple[Regression, Regression]:
    """Return the regressions of week 20 and of week 96."""
    first, arms = np.digitize(table["cd420"], STRATA), np.eye(len(ARMS))[table["arms"]]
    last = np.where(table["cd496"].isna(), len(STRATA) + 1, np.digitize(table["cd496"], STRATA))
    enrolled = np.hstack([np.ones((len(table), 1)), covariates(table)])
    return (
        Regression(np.hstack([enrolled, arms]), first, _penalties(enrolled.shape[1], 3.0, 3.0)),
        Regression(
            np.hstack([enrolled, np.eye(len(STRATA) + 1)[first], arms]),
            last,
            _penalties(enrolled.shape[1] + len(STRATA) + 1, 3.0, 100.0),
        ),
    )


def _penalties(columns: int, covariates: float, arms: float) -> FloatArray:
    return np.array([1e-6, *[covariates] * (columns - 1), *[arms] * len(ARMS)])


@final
@dataclass(kw_only=True, eq=False)
class ACTG175(Noiseless):
    """The patients of ACTG 175 and tables fitted to them; needs the extra `actg175`.

    Parameters
    ----------
    transition_class_size : int
        Number M of fits in the class; 8 by default.
    seed : int
        Draws the resamples of patients, and the place of the true fit among them.

    >>> world = ACTG175()  # doctest: +SKIP
    >>> len(world.contexts), world.space.states  # doctest: +SKIP
    (2139, 10)
    """

    package = "lifelines"
    return_range = (0.0, 2.0)
    state_names = (
        "enrolled",
        *(f"week {week}, CD4 {stratum}" for week in (20, 96) for stratum in ("< 200", "< 350", "< 500", "≥ 500")),
        "lost",
    )
    action_names, feature_names = ARMS, COVARIATES

    transition_class_size: int = 8
    misspecification: float = field(default=0.0, init=False)

    def _draw(self) -> None:
        admissible = np.ones((LOST + 1, len(ARMS)), dtype=np.bool_)
        admissible[WEEK_96:, 1:] = False
        self.space = Space(states=LOST + 1, actions=len(ARMS), horizon=3, admissible=admissible)
        self.patients = patients()
        self.contexts = contexts = tuple(map(frozen, covariates(self.patients)))
        generator, size = np.random.default_rng(seed_number(self.seed)), self.transition_class_size
        self.transition_index = int(generator.integers(size))
        counts = generator.multinomial(len(contexts), np.full(len(contexts), 1.0 / len(contexts)), size=size)
        counts[self.transition_index] = 1
        self._week_20, self._week_96 = (_fits(stage, counts) for stage in stages(self.patients))

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (1, S, A), which are known."""
        vector(context, len(COVARIATES))
        return np.repeat(QUALITY[None, :, None], len(ARMS), axis=2)

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) of all fits."""
        enrolled = np.concatenate([[1.0], vector(context, len(COVARIATES))])
        first, last = (np.tensordot(enrolled, w[:, : len(enrolled)], (0, 1)) for w in (self._week_20, self._week_96))
        arms, strata = slice(-len(ARMS), None), slice(-len(ARMS) - len(STRATA) - 1, -len(ARMS))
        tables = np.zeros((len(first), LOST + 1, len(ARMS), LOST + 1))
        tables[:, 0, :, WEEK_20:WEEK_96] = softmax(first[:, None] + self._week_20[:, arms])
        tables[:, WEEK_20:WEEK_96, :, WEEK_96:] = softmax(
            last[:, None, None] + self._week_96[:, strata, None] + self._week_96[:, None, arms]
        )
        ended = np.arange(WEEK_96, LOST + 1)
        tables[:, ended, :, ended] = 1.0
        return tables


def _fits(stage: Regression, counts: NDArray[np.int64]) -> FloatArray:
    """Return the fits (M, d, K) to the patients, each patient repeated as `counts` (M, n) says."""
    design, outcomes, penalties = stage
    start = np.zeros((design.shape[1], int(outcomes.max()) + 1))
    whole = fit(design, outcomes, penalties, start=start)
    return np.stack([fit(design, outcomes, penalties, start=whole, weights=w.astype(np.float64)) for w in counts])
