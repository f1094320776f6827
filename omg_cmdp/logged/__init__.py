"""Episodes that somebody else has played: read from a table, learned from, and used to value another policy."""

from omg_cmdp.logged.evaluation import Estimate, doubly_robust, importance_sampling
from omg_cmdp.logged.frames import read_export, read_frame
from omg_cmdp.logged.log import Log
from omg_cmdp.logged.warm_start import warm_start

__all__ = ["Estimate", "Log", "doubly_robust", "importance_sampling", "read_export", "read_frame", "warm_start"]
