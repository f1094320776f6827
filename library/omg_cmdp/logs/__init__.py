"""Logged episodes: the log, tables and files, estimates of another policy's value, warm starts."""

from omg_cmdp.logs.exports import read_export
from omg_cmdp.logs.feature_ranking import FeatureRanking, Suggestion, suggest_features
from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.estimate import Estimate, Support
from omg_cmdp.logs.off_policy.improvement import Improvement, improvement
from omg_cmdp.logs.off_policy.propensities import Overlap, estimate_propensities
from omg_cmdp.logs.off_policy.sampling import doubly_robust, importance_sampling
from omg_cmdp.logs.readers import read_log
from omg_cmdp.logs.tables import read_table
from omg_cmdp.logs.warm_start import warm_start

__all__ = [
    "Estimate",
    "FeatureRanking",
    "Improvement",
    "Log",
    "Overlap",
    "Suggestion",
    "Support",
    "doubly_robust",
    "estimate_propensities",
    "importance_sampling",
    "improvement",
    "read_export",
    "read_log",
    "read_table",
    "suggest_features",
    "warm_start",
]
