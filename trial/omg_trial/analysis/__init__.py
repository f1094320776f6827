"""The analysis of a trial: effects of actions and values of policies, with errors that are clustered by person."""

from omg_trial.analysis.clustered import ClusteredEstimate, clustered_fit
from omg_trial.analysis.effects import arm_difference, earned, treatment_effect
from omg_trial.analysis.excursion import excursion_effect

__all__ = ["ClusteredEstimate", "arm_difference", "clustered_fit", "earned", "excursion_effect", "treatment_effect"]
