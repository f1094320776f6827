"""OMG-CMDP!, its exploration rules, and the baselines that give the scale."""

from omg_cmdp.agents.agent import Agent as Agent
from omg_cmdp.agents.baselines.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from omg_cmdp.agents.baselines.greedy import Greedy as Greedy
from omg_cmdp.agents.baselines.informed import Informed as Informed
from omg_cmdp.agents.baselines.posterior_sampling import PosteriorSampling as PosteriorSampling
from omg_cmdp.agents.baselines.uniform import Uniform as Uniform
from omg_cmdp.agents.exploration.accounted import Accounted as Accounted
from omg_cmdp.agents.exploration.base import ExplorationRule as ExplorationRule
from omg_cmdp.agents.exploration.base import Situation as Situation
from omg_cmdp.agents.exploration.gain import GainWeighted as GainWeighted
from omg_cmdp.agents.exploration.schedules import Power as Power
from omg_cmdp.agents.exploration.schedules import Schedule as Schedule
from omg_cmdp.agents.exploration.theorems import Anytime as Anytime
from omg_cmdp.agents.exploration.theorems import Theory as Theory
from omg_cmdp.agents.exploration.uncertainty import UncertaintyWeighted as UncertaintyWeighted
from omg_cmdp.agents.omg import OMG as OMG
from omg_cmdp.planning.decision import Decision as Decision
from omg_cmdp.planning.decision import Mixture as Mixture

__all__ = sorted(name for name, each in vars().items() if not name.startswith("_") and callable(each))
