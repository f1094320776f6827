"""Logged episodes: the log, tables and files, estimates of another policy's value, warm starts."""

from omg_cmdp.logs.exports import read_export
from omg_cmdp.logs.feature_ranking import FeatureRanking, Suggestion, suggest_features
from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.direct import fitted_q, model_value
from omg_cmdp.logs.off_policy.estimate import Estimate, Support
from omg_cmdp.logs.off_policy.evaluation import Evaluation, evaluate
from omg_cmdp.logs.off_policy.improvement import Improvement, improvement
from omg_cmdp.logs.off_policy.marginal import marginal_doubly_robust, marginal_sampling
from omg_cmdp.logs.off_policy.propensities import Overlap, estimate_propensities
from omg_cmdp.logs.off_policy.sampling import doubly_robust, importance_sampling
from omg_cmdp.logs.readers import read_log
from omg_cmdp.logs.tables import read_table
from omg_cmdp.logs.warm_start import warm_start

__all__ = [
    "Estimate",
    "Evaluation",
    "FeatureRanking",
    "Improvement",
    "Log",
    "Overlap",
    "Suggestion",
    "Support",
    "doubly_robust",
    "estimate_propensities",
    "evaluate",
    "fitted_q",
    "importance_sampling",
    "improvement",
    "marginal_doubly_robust",
    "marginal_sampling",
    "model_value",
    "read_export",
    "read_log",
    "read_table",
    "suggest_features",
    "warm_start",
]
