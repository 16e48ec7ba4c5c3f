"""A step in a line: what differs from the defaults, ids without their zeros, times by the clock."""

from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID


def brief(value: object) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        told = [(one, getattr(value, one.name)) for one in fields(value)]
        shown = [
            f"{one.name}={brief(each)}"
            for one, each in told
            if one.default is MISSING or each != one.default
        ]
        return f"{type(value).__name__}({', '.join(shown)})"
    if isinstance(value, UUID):
        return value.hex.lstrip("0")
    if isinstance(value, datetime):
        return f"{value:%H:%M:%S.%f}".rstrip("0").rstrip(".")
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple | list | set | frozenset):
        return f"[{', '.join(map(brief, value))}]"
    return repr(value)
