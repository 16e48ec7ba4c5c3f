"""What each job owes and what it has: the instants of its schedules while they were in force, and
the outcome of each, an execution or a skip record.

An edit settles what is due under the old version and begins the new one; a recurring schedule
begins at the edit, a single instant wherever it lies but never at what was settled before. A paused
job owes nothing until it goes on, and then what it missed. The fire that reaches `max_runs` is the
last.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from uuid import UUID

from chaos.checker.history import History
from chaos.facts import Row
from chaos.oracle import CannotTell, instants

RECURRING: Final = frozenset({"CRON", "INTERVAL"})
# After this an instant has its outcome on a machine where nothing is broken.
SETTLED_WITHIN: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time in which one schedule of a job was in force, in after < instant <= until; what lies
    up to `settled` must have an outcome."""

    job_id: UUID
    schedule_version: int
    versions: range
    schedule: Row
    counted_from: datetime
    after: datetime | None
    until: datetime
    settled: datetime

    @property
    def max_runs(self) -> int | None:
        most: int | None = self.schedule.get("max_runs")
        return most


@dataclass(slots=True)
class Page:
    """The ledger of a stretch: its instants, and the outcomes of each by its place."""

    stretch: Stretch
    owed: list[datetime]
    fires: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    skips: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    unexpected: list[Row] = field(default_factory=list)
    miscounted: list[tuple[Row, int]] = field(default_factory=list)

    def place(self, instant: datetime) -> int | None:
        place = bisect_left(self.owed, instant)
        return place if place < len(self.owed) and self.owed[place] == instant else None

    def lost(self) -> Iterator[datetime]:
        for place, instant in enumerate(self.owed):
            if instant > self.stretch.settled:
                return
            if place not in self.fires and place not in self.skips:
                yield instant

    def doubled(self) -> Iterator[tuple[datetime, list[Row], list[Row]]]:
        for place in sorted(self.fires.keys() | self.skips.keys()):
            fires, skips = self.fires.get(place, []), self.skips.get(place, [])
            if len(fires) + len(skips) > 1:
                yield self.owed[place], fires, skips


@dataclass(slots=True)
class JobLedger:
    """`strange` are fires and skips of a version that the job never had; `untold`: the oracle knows
    no such schedule."""

    job: Row
    pages: list[Page]
    strange: list[Row]
    untold: str | None = None


@lru_cache(maxsize=1)
def ledgers(history: History) -> tuple[JobLedger, ...]:
    """Of all jobs; several checks and the report ask for the same ones."""
    fires: dict[UUID, list[Row]] = defaultdict(list)
    for row in history.known.values():
        if row["trigger"] == "SCHEDULE":
            fires[row["job_id"]].append(row)
    read_at = history.facts.read_at
    return tuple(
        _told(
            job,
            history.versions.get(id_, []),
            fires.get(id_, []),
            history.skips.get(id_, []),
            read_at,
        )
        for id_, job in history.jobs.items()
    )


def _told(
    job: Row, versions: Sequence[Row], fires: Sequence[Row], skips: Sequence[Row], read_at: datetime
) -> JobLedger:
    try:
        return _ledger(job, stretches(job, versions, read_at), fires, skips)
    except CannotTell as unknown:
        return JobLedger(job, [], [], str(unknown))


def stretches(job: Row, versions: Sequence[Row], read_at: datetime) -> list[Stretch]:
    firsts = [
        place
        for place, row in enumerate(versions)
        if place == 0 or row["schedule_version"] != versions[place - 1]["schedule_version"]
    ]
    found: list[Stretch] = []
    counted_from = job["created_at"]
    for number, place in enumerate(firsts):
        row, schedule = versions[place], versions[place]["definition"]["schedule"]
        if number and _restarts(found[-1].schedule, schedule):
            counted_from = row["valid_from"]
        following = firsts[number + 1] if number + 1 < len(firsts) else len(versions)
        until, settled = _end(versions, following, schedule, read_at)
        ends_with = versions[following - 1]["version"]
        found.append(
            Stretch(
                job["id"],
                row["schedule_version"],
                range(row["version"], ends_with + 1),
                schedule,
                counted_from,
                _beginning(row, schedule, is_first=number == 0),
                until,
                settled,
            )
        )
    return found


def _restarts(old: Row, new: Row) -> bool:
    """A delay counts from the edit that set it, an interval from the one that made it one."""
    return old["type"] != new["type"] or old.get("delay_seconds") != new.get("delay_seconds")


def _beginning(row: Row, schedule: Row, *, is_first: bool) -> datetime | None:
    settled: datetime | None = row["last_instant"]
    if is_first or schedule["type"] not in RECURRING:
        return settled
    edited: datetime = row["valid_from"]
    return edited if settled is None else max(edited, settled)


def _end(
    versions: Sequence[Row], following: int, schedule: Row, read_at: datetime
) -> tuple[datetime, datetime]:
    """Up to where a schedule may have outcomes, and up to where it must."""
    if following < len(versions):
        changed = versions[following]["valid_from"]
        return changed, changed
    last = versions[-1]
    if last["status"] == "DELETED":
        return last["valid_from"], last["valid_from"]
    if last["status"] == "PAUSED":
        paused = last["valid_from"]
        for row in reversed(versions):
            if row["status"] != "PAUSED":
                break
            paused = row["valid_from"]
        return paused, paused
    jitter = timedelta(seconds=schedule.get("jitter_seconds") or 0)
    return read_at, read_at - SETTLED_WITHIN - jitter


def _ledger(
    job: Row, found: Sequence[Stretch], fires: Iterable[Row], skips: Iterable[Row]
) -> JobLedger:
    ledger = JobLedger(job, [], [])
    of_version = {version: one for one in found for version in one.versions}
    of_schedule = {one.schedule_version: one for one in found}
    fires_of: dict[int, list[Row]] = defaultdict(list)
    skips_of: dict[int, list[Row]] = defaultdict(list)
    for row in fires:
        stretch = of_version.get(row["job_version"])
        if stretch is None:
            ledger.strange.append(row)
        else:
            fires_of[stretch.schedule_version].append(row)
    for row in skips:
        if row["schedule_version"] in of_schedule:
            skips_of[row["schedule_version"]].append(row)
        else:
            ledger.strange.append(row)
    fired = 0
    for stretch in found:
        own = fires_of[stretch.schedule_version]
        page = _page(stretch, own, skips_of[stretch.schedule_version], fired)
        ledger.pages.append(page)
        fired += len(own)
    return ledger


def _page(stretch: Stretch, fires: Sequence[Row], skips: Sequence[Row], fired_before: int) -> Page:
    owed = instants(stretch.schedule, stretch.counted_from, stretch.after, stretch.until)
    if stretch.max_runs is not None:
        owed = _up_to_last_run(owed, fires, stretch.max_runs - fired_before)
    page = Page(stretch, owed)
    for row in fires:
        place = page.place(row["scheduled_time"])
        if place is None:
            page.unexpected.append(row)
        else:
            page.fires[place].append(row)
    if stretch.schedule["type"] != "AFTER":
        for row in skips:
            _add_skip(page, row)
    return page


def _up_to_last_run(owed: list[datetime], fires: Sequence[Row], left: int) -> list[datetime]:
    """Fires count, skips do not: the instants end with the fire that used up the last run."""
    if left <= 0:
        return []
    if len(fires) < left:
        return owed
    last = sorted(row["scheduled_time"] for row in fires)[left - 1]
    return owed[: bisect_right(owed, last)]


def _add_skip(page: Page, row: Row) -> None:
    low = bisect_left(page.owed, row["from_instant"])
    high = bisect_right(page.owed, row["to_instant"])
    ends = (page.place(row["from_instant"]), page.place(row["to_instant"]))
    if None in ends:
        page.unexpected.append(row)
        return
    if high - low != row["count"]:
        page.miscounted.append((row, high - low))
    for place in range(low, high):
        page.skips[place].append(row)


@dataclass(slots=True)
class Tally:
    """All jobs together: what was owed and what became of it."""

    expected: int = 0
    fired: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    open: int = 0  # the newest, which still have time


def tally(found: Iterable[JobLedger]) -> Tally:
    total = Tally()
    for page in (page for ledger in found for page in ledger.pages):
        total.expected += len(page.owed)
        total.fired += len(page.fires)
        for place, rows in page.skips.items():
            if place not in page.fires:
                total.skipped[rows[0]["reason"]] += 1
        lost = sum(1 for _ in page.lost())
        total.lost += lost
        total.open += len(page.owed) - len(page.fires.keys() | page.skips.keys()) - lost
        total.doubled += sum(1 for _ in page.doubled())
    return total
