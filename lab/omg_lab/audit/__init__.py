"""Each statement of the analysis as a check of a run that can fail."""

from omg_lab.audit.audit import Audit, AuditRow, Summary, combine
from omg_lab.audit.statements import KINDS, Statement

__all__ = ["KINDS", "Audit", "AuditRow", "Statement", "Summary", "combine"]
