"""The jobs that are due soon, in memory, in the order in which they are due.

A job is here once. What the database says replaces what was here before, unless it was asked before
our own last fire of that job was answered: then it tells of the past. While a job is on its way to
the database nothing replaces it. A pause, an edit or a delete needs no withdrawal: firing compares.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from foliot.core.ids import JobId, shard_of
from foliot.core.schedule.misfire import MISFIRE_AFTER_SECONDS
from foliot.runtime.loop import Hint
from foliot.store.firing import JobFire
from foliot.store.staging import DueJob, settle_due


@dataclass(slots=True, eq=False)
class Entry:
    """`ready` is what the job becomes if it is fired before `ready_until`."""

    due: DueJob
    turn: int = 0
    ready: JobFire | None = None
    ready_until: datetime | None = None

    def prepare(self) -> None:
        """Settle it as of its due time: in a herd there is no time for that later.

        That holds while no second instant is due and it is not late enough for a policy to act.
        """
        due = self.due
        fire = settle_due(due, due.next_run_at)
        if fire is None:
            return
        until = due.expected + timedelta(
            seconds=MISFIRE_AFTER_SECONDS + due.schedule.jitter_seconds
        )
        if fire.holds_until is not None:
            until = min(until, fire.holds_until)
        if fire.next_instant is not None:
            until = min(until, fire.next_instant)
        self.ready, self.ready_until = fire, until

    def settle(self, now: datetime) -> JobFire | None:
        """What its instants up to `now` become."""
        if self.ready is not None and self.ready_until is not None and now < self.ready_until:
            return self.ready
        return settle_due(self.due, now)


class Staged:
    """`earlier` is hinted at when the first that is due is another, earlier one."""

    def __init__(self) -> None:
        self.earlier = Hint()
        self.turn = 0
        self._heap: list[tuple[datetime, int, Entry]] = []
        self._number = 0
        self._waiting: dict[JobId, Entry] = {}
        self._under_way: set[JobId] = set()
        self._raw: deque[Entry] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def next_due(self) -> datetime | None:
        self._skim()
        return self._heap[0][0] if self._heap else None

    def count_due(self, before: datetime) -> int:
        """How many were due before that and still wait: below one that was not, none was."""
        count, places = 0, [0]
        while places:
            place = places.pop()
            if place < len(self._heap) and self._heap[place][0] < before:
                count += self._is_waiting(self._heap[place][2])
                places += (2 * place + 1, 2 * place + 2)
        return count

    def offer(self, dues: Iterable[DueJob], turn: int) -> int:
        """What the database told, when asked at `turn`; how many were news."""
        return sum(self._offer(due, turn) for due in dues)

    def take_due(self, now: datetime, limit: int) -> list[Entry]:
        """The first `limit` that are due; they are under way until they `land`."""
        taken: list[Entry] = []
        while len(taken) < limit:
            self._skim()
            if not self._heap or self._heap[0][0] > now:
                break
            entry = heappop(self._heap)[2]
            del self._waiting[entry.due.job_id]
            self._under_way.add(entry.due.job_id)
            taken.append(entry)
        return taken

    def land(self, entries: Sequence[Entry], following: Iterable[DueJob]) -> None:
        """The database has answered: these are done with, and some come again."""
        self.turn += 1
        self._under_way.difference_update(entry.due.job_id for entry in entries)
        for due in following:
            self._put(Entry(due, self.turn))

    def put_back(self, entries: Iterable[Entry]) -> None:
        """No answer: as it was."""
        for entry in entries:
            self._under_way.discard(entry.due.job_id)
            self._put(entry)

    def keep(self, shards: Collection[int]) -> None:
        """Forget the jobs of all other shards."""
        kept = {job: entry for job, entry in self._waiting.items() if shard_of(job) in shards}
        if len(kept) < len(self._waiting):
            self._waiting = kept
            self._heap = [item for item in self._heap if self._is_waiting(item[2])]
            heapify(self._heap)

    def prepare(self, limit: int) -> bool:
        """Settle up to `limit` of those that came since; whether there are more.

        One that cannot be settled is told about when it is fired.
        """
        for _ in range(min(limit, len(self._raw))):
            entry = self._raw.popleft()
            if self._is_waiting(entry):
                with suppress(Exception):
                    entry.prepare()
        return bool(self._raw)

    def _offer(self, due: DueJob, turn: int) -> bool:
        if due.job_id in self._under_way:
            return False
        known = self._waiting.get(due.job_id)
        if known is not None and (known.turn > turn or _same(known.due, due)):
            return False
        self._put(Entry(due, turn))
        return True

    def _put(self, entry: Entry) -> None:
        due = entry.due
        first = self.next_due
        self._waiting[due.job_id] = entry
        self._number += 1
        heappush(self._heap, (due.next_run_at, self._number, entry))
        self._raw.append(entry)
        if first is None or due.next_run_at < first:
            self.earlier.give()

    def _skim(self) -> None:
        """Take from the top what was replaced."""
        while self._heap and not self._is_waiting(self._heap[0][2]):
            heappop(self._heap)

    def _is_waiting(self, entry: Entry) -> bool:
        return self._waiting.get(entry.due.job_id) is entry


def _same(one: DueJob, other: DueJob) -> bool:
    """All that firing compares, and when it is due."""
    return (one.expected, one.schedule_version, one.queue, one.next_run_at) == (
        other.expected,
        other.schedule_version,
        other.queue,
        other.next_run_at,
    )
