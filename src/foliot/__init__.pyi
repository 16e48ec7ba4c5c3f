from foliot.worker.app import App as App
from foliot.worker.context import Context as Context
from foliot.worker.context import DoNotRetry as DoNotRetry
from foliot.worker.context import Snooze as Snooze

__all__ = ["App", "Context", "DoNotRetry", "Snooze", "__version__"]

__version__: str
