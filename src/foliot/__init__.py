"""Foliot: cron, queues and workflows on PostgreSQL."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("foliot")
