"""Compare algorithms for contextual MDPs: worlds with exact regret, rivals, audits, studies and reports."""

from omg_lab import rivals, worlds
from omg_lab.audit import Audit
from omg_lab.compare import Comparison, compare
from omg_lab.sample_complexity import sample_complexity

__version__ = "0.1.0"

__all__ = ["Audit", "Comparison", "compare", "rivals", "sample_complexity", "worlds"]
