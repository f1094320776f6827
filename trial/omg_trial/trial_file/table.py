"""The form of every table of a trial file."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from omg_cmdp.documents import FileError, nearest


def _time_of_day(value: Any) -> datetime.time:
    try:
        time = datetime.time.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        time = None
    if not isinstance(time, datetime.time) or time.tzinfo is not None:
        raise ValueError("give a time of day such as '08:00', without a zone")
    return time


TimeOfDay = Annotated[datetime.time, BeforeValidator(_time_of_day)]


class FileTable(BaseModel):
    """A table of the file. Values are not converted: "3" is no number."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, content: Any) -> Any:
        for key in content if isinstance(content, dict) else ():
            if key not in cls.model_fields:
                raise FileError(f"there is no such key; {nearest(key, cls.model_fields)}", (key,))
        return content
