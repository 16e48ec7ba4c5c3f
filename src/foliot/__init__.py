"""Foliot: cron, queues and workflows on PostgreSQL.

What a user's module imports is loaded when it is asked for, so that the command line answers at
once; `__init__.pyi` tells type checkers the same.
"""

from importlib import import_module
from importlib.metadata import version

__all__ = ["App", "Context", "DoNotRetry", "Snooze", "__version__"]

__version__ = version("foliot")

_HOMES = {
    "App": "foliot.worker.app",
    "Context": "foliot.worker.context",
    "DoNotRetry": "foliot.worker.context",
    "Snooze": "foliot.worker.context",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'foliot' has no attribute {name!r}")
    found: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found
