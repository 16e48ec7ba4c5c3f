"""Makes attempts in hosts: picks one, keeps the time, stops what should stop, tells how it ended.

No attempt has a timer or a task of its own here. Its deadline is an entry in a heap; when that
comes up it is asked to stop, and when its grace is over its host is killed. Of a shared host only
those at fault have ended by that: the others are handed back. Time runs from when an attempt
begins: one that its host does not get to is handed back as well.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from foliot.runtime.alarms import Alarms
from foliot.worker.app import Kind
from foliot.worker.hosts.host import Host
from foliot.worker.hosts.messages import (
    Began,
    End,
    Leaving,
    Logged,
    News,
    Pong,
    Progressed,
    Returned,
    Stopped,
    Unknown,
)
from foliot.worker.hosts.nursery_link import NotWanted, NurseryLink
from foliot.worker.hosts.pool import STILL_SECONDS, HostLimits, HostPool
from foliot.worker.hosts.under_way import Asked, UnderWay, ended_by
from foliot.worker.hosts.verdict import Death, verdict
from foliot.worker.modules import ModuleNotImported
from foliot.worker.tasks import Cancelled, Ended, HandedBack, Reporter, Task, already

log = logging.getLogger(__name__)

# Keys of alarms that belong to no attempt.
_TELL, _LOOK = -1, -2
TELL_SECONDS: Final = 0.2
LOOK_SECONDS: Final = 1.0
# After so long without an answer, what should have killed a host is woken, and then killed. If it
# answers, it has done so: a process with much memory, or one that hangs in the kernel, dies slowly.
KILL_SECONDS: Final = 3.0
_STOPPING: Final = "the worker is stopping"
_LET_GO: Final = "its worker has let go of it"
# Ends of what may never have begun.
_NOT_BEGUN: Final = frozenset({Stopped, Unknown})
# The database's address and password, and the keys of secrets, are none of a handler's business.
_SECRETS: Final = frozenset(
    {
        "FOLIOT_DATABASE_URL",
        "FOLIOT_DATABASE_URL_FILE",
        "FOLIOT_SECRET_KEYS",
        "FOLIOT_SECRET_KEYS_FILE",
    }
)


class HandlerRunner:
    """The Runner of Python handlers. One per worker; a loop must be running."""

    def __init__(
        self,
        targets: Sequence[str],
        *,
        limits: HostLimits | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        # To ask which loop runs is a system call each time.
        self._loop = asyncio.get_running_loop()
        given = os.environ if environ is None else environ
        kept = {name: value for name, value in given.items() if name not in _SECRETS}
        self._nursery = NurseryLink(targets, kept, self._host_exited, self._nursery_lost)
        self._limits = limits or HostLimits()
        self._pool = HostPool(self._limits, self._nursery, self._hear)
        self._alarms = Alarms(self._ring)
        self._handlers: dict[str, tuple[Kind, bool]] = {}
        self._reviving = asyncio.Lock()
        self._failures = 0  # of reviving
        self._trouble = ""
        self._arriving: dict[UUID, str | None] = {}  # waits for a process; why it need not
        self._tickets = 0
        self._placed: dict[int, tuple[UnderWay, Host]] = {}
        self._by_execution: dict[UUID, int] = {}
        self._with_news: set[int] = set()
        self._is_closing = False

    @property
    def handlers(self) -> frozenset[str]:
        return frozenset(self._handlers)

    async def start(self) -> None:
        imported = await self._nursery.start()
        self._handlers = {
            name: (Kind(kind), is_async) for name, (kind, is_async) in imported.handlers.items()
        }

    def run(self, task: Task, reporter: Reporter) -> Awaitable[Ended]:
        if task.handler not in self._handlers:
            return already(HandedBack(f"no such handler: {task.handler}"))
        if task.execution_id in self._by_execution:
            return already(HandedBack("an earlier attempt of it still runs here"))
        if not self._nursery.is_alive:
            return self._run_in_time(task, reporter)
        try:
            return self._place(task, reporter).ended
        except OSError as error:
            return already(HandedBack(f"no process for it: {error.strerror or error}"))

    def cancel(self, execution_id: UUID, reason: str) -> None:
        ticket = self._by_execution.get(execution_id)
        if execution_id in self._arriving:
            self._arriving[execution_id] = reason
        elif ticket is not None:
            self._ask_to_stop(ticket, Asked(is_timeout=False, reason=reason))

    async def close(self, *, grace_seconds: float) -> None:
        self._is_closing = True
        if self._placed and grace_seconds > 0:
            endings = [under_way.ended for under_way, _ in self._placed.values()]
            await asyncio.wait(endings, timeout=grace_seconds)
        await self._nursery.close()
        async with self._reviving:  # whoever was starting it has heard of that
            await self._nursery.close()
        for number in list(self._pool.hosts):
            self._bury(number, None)
        self._alarms.close()

    def _place(self, task: Task, reporter: Reporter) -> UnderWay:
        if self._is_closing:
            raise OSError(_STOPPING)
        kind, is_async = self._handlers[task.handler]
        if kind is Kind.PROCESS or task.run_alone:
            host = self._pool.pick_single(is_async=is_async, must_be_fresh=task.run_alone)
        else:
            host = self._pool.pick_shared()
        self._tickets += 1
        under_way = UnderWay(self._tickets, task, reporter, self._loop)
        under_way.ended.let_go = partial(self.cancel, task.execution_id, _LET_GO)
        self._placed[under_way.ticket] = (under_way, host)
        self._by_execution[task.execution_id] = under_way.ticket
        first = min(task.timeout_seconds, self._limits.begin_seconds)
        self._alarms.set(under_way.ticket, first)
        if host.shape.is_shared and _LOOK not in self._alarms:
            self._alarms.set(_LOOK, LOOK_SECONDS)
        host.begin(under_way)
        return under_way

    async def _run_in_time(self, task: Task, reporter: Reporter) -> Ended:
        """Once there is a process for it, if somebody still wants it then."""
        self._arriving[task.execution_id] = None
        try:
            trouble = await self._revive()
        finally:
            reason = self._arriving.pop(task.execution_id, None)
        if reason is not None:
            return Cancelled(reason)
        return HandedBack(trouble) if trouble is not None else await self.run(task, reporter)

    async def _revive(self) -> str | None:
        """The nursery was lost: another takes its place. Says why not. Importing may take long: who
        has waited while it failed does not try the same again."""
        failures = self._failures
        async with self._reviving:
            if self._nursery.is_alive:
                return None
            if self._failures != failures:
                return self._trouble
            await self._nursery.close()
            if self._is_closing:
                return _STOPPING
            try:
                await self._nursery.start()
            except NotWanted:
                return _STOPPING
            except (ModuleNotImported, OSError) as error:
                log.warning("handlers cannot run: %s", error)
                self._failures += 1
                self._trouble = f"no process for it: {error}"
                return self._trouble
        return None

    # What hosts say.

    def _hear(self, host: Host, news: News) -> None:
        match news:
            case Returned():  # nearly always; to ask what it is not takes longer
                self._hear_end(host, news)
            case Began():
                now = self._loop.time()
                for ticket in news.tickets:
                    if ticket in host.under_way:
                        self._begin(host.under_way[ticket], now)
            case Logged() | Progressed():
                self._hear_words(host, news)
            case Pong():
                host.answered(news.number)
            case Leaving():
                host.is_leaving = True
            case _:
                self._hear_end(host, news)

    def _begin(self, under_way: UnderWay, at: float) -> None:
        if under_way.has_begun:
            return
        under_way.begin(at)
        late = at - under_way.placed_at
        if late > under_way.task.timeout_seconds and under_way.asked is None:
            # Its alarm has rung before, and was put off.
            self._alarms.set(under_way.ticket, under_way.task.timeout_seconds)

    def _hear_words(self, host: Host, news: Logged | Progressed) -> None:
        under_way = host.under_way.get(news.ticket)
        if under_way is None:
            return
        self._begin(under_way, self._loop.time())
        if isinstance(news, Logged):
            under_way.hear_lines(news.lines)
        else:
            under_way.progress(news.percent, news.message)
        self._has_news(under_way.ticket)

    def _has_news(self, ticket: int) -> None:
        if not self._with_news:
            self._alarms.set(_TELL, TELL_SECONDS)
        self._with_news.add(ticket)

    def _hear_end(self, host: Host, end: End) -> None:
        under_way = host.under_way.get(end.ticket)
        if under_way is None:
            return
        if type(end) not in _NOT_BEGUN:
            under_way.begin(self._loop.time())
        host.drain_output()
        self._end(host, under_way, _as_told(under_way, end))
        if host.is_leaving and not host.under_way:
            host.kill()
        else:
            self._pool.give_back(host, is_spent=under_way.task.run_alone)

    def _end(self, host: Host, under_way: UnderWay, ended: Ended) -> None:
        ticket = under_way.ticket
        host.under_way.pop(ticket, None)
        self._placed.pop(ticket, None)
        self._by_execution.pop(under_way.task.execution_id, None)
        self._with_news.discard(ticket)
        self._alarms.drop(ticket)
        under_way.end(ended)

    # Time.

    def _ring(self, key: int) -> None:
        if key == _TELL:
            self._tell()
        elif key == _LOOK:
            self._look()
        elif key in self._placed:
            under_way, host = self._placed[key]
            if under_way.asked is not None:
                self._kill(host, under_way)
            elif (left := self._seconds_left(under_way, host)) > 0:
                self._alarms.set(key, left)
            else:
                too_early = not under_way.has_begun
                self._ask_to_stop(key, Asked(is_timeout=True, too_early=too_early))

    def _seconds_left(self, under_way: UnderWay, host: Host) -> float:
        self._read_board(host)
        now = self._loop.time()
        timeout = under_way.task.timeout_seconds
        if under_way.has_begun:
            return under_way.began_at + timeout - now
        patience = self._limits.begin_seconds
        if host.is_at_work or self._nursery.is_cold:
            # To get it back, what its process is at would have to be killed: another handler that
            # keeps it waiting, or an import, which would take as long the next time.
            patience = max(patience, timeout)
        return under_way.placed_at + patience - now

    def _ask_to_stop(self, ticket: int, asked: Asked) -> None:
        under_way, host = self._placed[ticket]
        if under_way.asked is None:
            self._read_board(host)
            under_way.asked = asked
            host.ask_to_stop(under_way)
            self._alarms.set(ticket, under_way.task.cancel_grace_seconds)

    def _kill(self, host: Host, under_way: UnderWay) -> None:
        """It was asked and did not stop."""
        if host.killed_for is None:
            host.killed_for = under_way
            stands_still = host.shape.is_async and host.stands_still_since(under_way.ping)
            host.blocker = host.board.running if stands_still else 0
            log.warning(
                "handler %s did not stop when told: its process is killed", under_way.task.handler
            )
        else:
            self._nursery.rouse(KILL_SECONDS)
        host.kill()
        self._alarms.set(under_way.ticket, KILL_SECONDS)

    def _tell(self) -> None:
        tickets, self._with_news = self._with_news, set()
        for ticket in tickets:
            if ticket in self._placed:
                self._placed[ticket][0].tell()

    def _look(self) -> None:
        """Whether loops still turn: a handler that keeps one is told so, where its user reads."""
        busy = [host for host in self._pool.shared() if host.under_way]
        for host in busy:
            self._read_board(host)
            still = host.silent_seconds()
            if still >= STILL_SECONDS and not host.is_reported:
                host.is_reported = True
                self._report_blocker(host, still)
            elif still == 0:
                host.is_reported = False
                host.send_ping()
        if busy:
            self._alarms.set(_LOOK, LOOK_SECONDS)

    def _read_board(self, host: Host) -> None:
        """Whose code runs has begun, though it may keep the loop from ever saying so: since the
        last look at the earliest."""
        under_way = host.under_way.get(host.board.running)
        if under_way is not None:
            now = self._loop.time()
            self._begin(under_way, max(under_way.placed_at, now - LOOK_SECONDS))

    def _report_blocker(self, host: Host, still: float) -> None:
        under_way = host.under_way.get(host.board.running)
        if under_way is None:
            return
        handler = under_way.task.handler
        log.warning("handler %s has kept the event loop for %.0f s", handler, still)
        words = (
            f"this handler has kept the event loop for {still:.0f} s, and others wait for it:"
            " await instead, or write it without async"
        )
        under_way.hear_warning(self._loop.time(), words)
        self._has_news(under_way.ticket)

    # Ends of processes.

    def _host_exited(self, number: int, status: int, reason: str) -> None:
        self._bury(number, status, reason)

    def _nursery_lost(self) -> None:
        if not self._is_closing:
            log.error("the process that starts handlers is gone: another will be started")
        for number in list(self._pool.hosts):
            self._bury(number, None)

    def _bury(self, number: int, status: int | None, reason: str = "") -> None:
        host = self._pool.forget(number)
        if host is None:
            return
        host.drain()
        # Of a nursery that is gone anybody may be the cause: who runs alone is held to account for
        # it, or suspicion would have no end. Not if it went because the worker lost patience.
        is_held = host.is_for_one_run and not self._nursery.is_given_up
        death = Death(
            status=status,
            running=host.board.running,
            was_killed=host.killed_for is not None,
            blocker=host.blocker,
            is_shared=host.shape.is_shared,
            is_alone=host.runs == 1 and (status is not None or is_held),
            reason=reason,
        )
        for under_way in list(host.under_way.values()):
            self._end(host, under_way, self._last_words(under_way, death))
        host.close()

    def _last_words(self, under_way: UnderWay, death: Death) -> Ended:
        if asked := under_way.as_asked():
            return asked
        if self._is_closing:
            return HandedBack(_STOPPING)
        return verdict(death, under_way.ticket, has_begun=under_way.has_begun)


def _as_told(under_way: UnderWay, end: End) -> Ended:
    """What was asked to stop ended as asked, unless it was too early and it ran all the same."""
    if under_way.asked is not None and under_way.asked.too_early and not isinstance(end, Stopped):
        return ended_by(end)
    return under_way.as_asked() or ended_by(end)
