"""The latest word of each attempt about how far it is, written once a second at the most."""

from foliot.core.ids import ExecutionId, WorkerId
from foliot.store.database import Database
from foliot.store.progress import Progress, write_progress
from foliot.worker.hand import Grip


class ProgressBook:
    def __init__(self, database: Database, worker_id: WorkerId) -> None:
        self._database = database
        self._worker_id = worker_id
        self._latest: dict[ExecutionId, Progress] = {}

    def note(self, grip: Grip, percent: float | None, message: str) -> None:
        self._latest[grip.execution_id] = Progress(grip.execution_id, grip.fence, percent, message)

    def forget(self, grip: Grip) -> None:
        """Its attempt is over, and with it what it said of itself."""
        self._latest.pop(grip.execution_id, None)

    async def run_once(self) -> int:
        """Write what was said since the last time; how many rows took it.

        What cannot be written is forgotten: the next word is worth more.
        """
        batch, self._latest = tuple(self._latest.values()), {}
        return await write_progress(self._database, self._worker_id, batch)
