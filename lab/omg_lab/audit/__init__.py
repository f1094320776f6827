"""Each statement of the analysis as a check of a run that can fail."""

from omg_lab.audit.audit import Audit, Row, Summary, combine
from omg_lab.audit.statements import KINDS, Statement

__all__ = ["KINDS", "Audit", "Row", "Statement", "Summary", "combine"]
