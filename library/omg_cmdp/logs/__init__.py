"""Logged episodes: the log, tables and files, estimates of another policy's value, warm starts."""

from omg_cmdp.logs.exports import read_export as read_export
from omg_cmdp.logs.feature_ranking import FeatureRanking as FeatureRanking
from omg_cmdp.logs.feature_ranking import Suggestion as Suggestion
from omg_cmdp.logs.feature_ranking import suggest_features as suggest_features
from omg_cmdp.logs.log import Log as Log
from omg_cmdp.logs.off_policy.estimate import Estimate as Estimate
from omg_cmdp.logs.off_policy.estimate import Support as Support
from omg_cmdp.logs.off_policy.improvement import Improvement as Improvement
from omg_cmdp.logs.off_policy.improvement import improvement as improvement
from omg_cmdp.logs.off_policy.propensities import Overlap as Overlap
from omg_cmdp.logs.off_policy.propensities import estimate_propensities as estimate_propensities
from omg_cmdp.logs.off_policy.sampling import doubly_robust as doubly_robust
from omg_cmdp.logs.off_policy.sampling import importance_sampling as importance_sampling
from omg_cmdp.logs.readers import read_log as read_log
from omg_cmdp.logs.tables import read_table as read_table
from omg_cmdp.logs.warm_start import warm_start as warm_start

__all__ = sorted(name for name, each in vars().items() if not name.startswith("_") and callable(each))
