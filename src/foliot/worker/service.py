"""A worker, life after life, until it is told to leave."""

from collections.abc import Callable

from foliot.runtime.clock import Clock
from foliot.store.workers import WorkerProfile
from foliot.worker.life import Ending, Life, Orders
from foliot.worker.lines import Lines
from foliot.worker.tasks import Runner
from foliot.worker.waking import DEAF, Ear


class WorkerService:
    """`make_runner` gives a new one for each life: the processes of the last one are gone."""

    def __init__(
        self,
        profile: WorkerProfile,
        lines: Lines,
        make_runner: Callable[[], Runner],
        clock: Clock,
        *,
        drain_seconds: float,
        ear: Ear = DEAF,
    ) -> None:
        self._profile = profile
        self._lines = lines
        self._make_runner = make_runner
        self._clock = clock
        self._drain_seconds = drain_seconds
        self._ear = ear

    async def run(self, orders: Orders) -> None:
        """Raises what keeps the first attempt to start from going well: a module that does not
        import, a database that refuses."""
        while True:
            runner = self._make_runner()
            life = Life(self._profile, self._lines, runner, self._clock, orders, self._ear)
            if await life.live(self._drain_seconds) is Ending.LEFT:
                return
