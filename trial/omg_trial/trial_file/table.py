"""The form of every table of a trial file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from omg_cmdp.documents import FileError, nearest


class FileTable(BaseModel):
    """A table of the file. Values are not converted: "3" is no number. The text below a key is its description."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, content: Any) -> Any:
        for key in content if isinstance(content, dict) else ():
            if key not in cls.model_fields:
                raise FileError(f"there is no such key; {nearest(key, cls.model_fields)}", (key,))
        return content
