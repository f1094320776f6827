"""The theorems as numbers (`bounds`) and as checks of a run (`Audit`)."""

from omg_cmdp.theory import bounds
from omg_cmdp.theory.audit import Audit, Row, Summary, combine

__all__ = ["Audit", "Row", "Summary", "bounds", "combine"]
