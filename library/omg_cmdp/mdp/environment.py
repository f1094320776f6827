"""What any environment says of itself, for those that build agents, oracles and reports for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import BoolArray, FloatArray


class Environment:
    """What an environment declares. Only `space` is required; each default says that nothing more is known."""

    space: Space
    contexts: Sequence[Context] = ()
    """The contexts that may come, where they can be listed."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """The least and the largest reward of a step, in the environment's own units."""
    return_range: tuple[float, float] | None = None
    """What an episode can earn in all, whatever is done and drawn, in the same units; None: H times `reward_range`."""
    state_names: Sequence[str] = ()
    """Names of the states for readers of a report; () if they have only numbers."""
    action_names: Sequence[str] = ()
    """Names of the actions."""
    feature_names: Sequence[str] = ()
    """Names of the entries of a context, if it is a vector."""
    support: BoolArray | None = None
    """Which next states can follow a pair, (S, A, S), in any context, for oracles that may know; None: any."""
    mdp: Callable[[Context], TabularMDP] | None = None
    """The true MDP of a context; None if its tables are unknown."""
    features: Callable[[Context], FloatArray] | None = None
    """The features (d,) of a context for parametric oracles; None: the context itself, if it is a vector."""
    reward_functions: Callable[[Context], FloatArray] | None = None
    """A finite class of reward functions at a context, (N, S, A); None if there is no class."""
    transition_functions: Callable[[Context], FloatArray] | None = None
    """A finite class of transitions at a context, (M, S, A, S); None if there is no class."""
    takes_keyed: ClassVar[bool] = False
    """Whether `sample` takes a context with its key (`contexts.Keyed`): where it looks nothing else up."""
    product_class = False
    """True if a member of the class may choose its function separately for every context and state."""

    @property
    def paid_range(self) -> tuple[float, float]:
        """The range of the rewards that `sample` pays, as an agent is to be told; [0, 1] where there are tables."""
        return 0.0, 1.0

    @property
    def paid_returns(self) -> tuple[float, float] | None:
        """The range of their sum over an episode; None: H times `paid_range`."""
        return self.return_range
