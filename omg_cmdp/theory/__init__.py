"""The theorems as numbers (`bounds`, `errors`) and as checks of a run (`Audit`)."""

from omg_cmdp.theory import bounds, errors
from omg_cmdp.theory.audit import Audit, Row, Summary, combine
from omg_cmdp.theory.constants import Assumptions

__all__ = ["Assumptions", "Audit", "Row", "Summary", "bounds", "combine", "errors"]
