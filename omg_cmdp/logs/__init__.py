"""Logged episodes: the log, tables and files, estimates of what another policy is worth, warm starts."""

from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy import Estimate, doubly_robust, importance_sampling
from omg_cmdp.logs.readers import read_export, read_frame
from omg_cmdp.logs.warm_start import warm_start

__all__ = ["Estimate", "Log", "doubly_robust", "importance_sampling", "read_export", "read_frame", "warm_start"]
