"""Small histories made by hand, as a run would have left them: what the checker is tried on.

Times are seconds from the beginning of the story. Rows are dicts until `facts` is called, so that a
story can be bent: what the checker must find is put there on purpose.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from chaos.checker import INVARIANTS
from chaos.checker.history import History
from chaos.checker.verdict import Findings, Verdict
from chaos.facts import Change, Effect, Exchange, Facts, Fault, Row, Sample

BEGAN: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
# The machine's own clock at the beginning.
FELT: Final = 1000.0
EVERY_SECOND: Final[Row] = {"type": "CRON", "cron_expression": "* * * * * *"}
WORKER: Final = UUID(int=0xAA)
OTHER_WORKER: Final = UUID(int=0xBB)
TENANT: Final = UUID(int=1)
MutableRow = dict[str, Any]
_GIVEN_BACK: Final = frozenset({"SNOOZE", "HAND_BACK", "HOLD"})
_STAYS: Final = {
    "RETRY": "RETRYING",
    "LOSE": "QUEUED",
    "HAND_BACK": "QUEUED",
    "SNOOZE": "PENDING",
    "HOLD": "WAITING",
}


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


@dataclass(slots=True)
class Told:
    """An execution in the making; each verb is one change."""

    story: "Story"
    row: MutableRow

    @property
    def id(self) -> UUID:
        id_: UUID = self.row["id"]
        return id_

    def change(self, seconds: float, **values: object) -> "Told":
        old = dict(self.row)
        self.row |= values
        self.story.log(seconds, old, dict(self.row))
        return self

    def release(self, seconds: float) -> "Told":
        return self.change(seconds, status="QUEUED", hold=None, rank=1.0, queued_at=at(seconds))

    def claim(self, seconds: float, worker: UUID = WORKER) -> "Told":
        return self.change(
            seconds,
            status="RUNNING",
            worker_id=worker,
            claimed_at=at(seconds),
            fence=self.row["fence"] + 1,
            attempt_number=self.row["attempt_number"] + 1,
        )

    def tell(self, what: str, seconds: float, **changes: Any) -> "Told":  # noqa: ANN401
        self.story.effects.append(
            Effect(
                **{
                    "number": len(self.story.effects) + 1,
                    "monotonic": FELT + seconds,
                    "execution_id": self.id,
                    "fence": self.row["fence"],
                    "attempt_number": self.row["attempt_number"],
                    "idempotency_key": str(self.id),
                    "what": what,
                    "process": 77,
                    "job": self.row["job_name"],
                    **changes,
                }
            )
        )
        return self

    def report(self, seconds: float, **values: Any) -> "Told":  # noqa: ANN401
        """A line of its present hold, as it was written."""
        fence = self.row["fence"]
        row = {"kind": "line", "execution_id": self.id, "fence": fence, "said": fence}
        self.story.reports.append(row | {"committed_at": at(seconds)} | values)
        return self

    def end(self, seconds: float, status: str = "SUCCEEDED", **values: object) -> "Told":
        """It is over."""
        self.attempt(seconds, status=status, final=True, **values)
        self.story.log(seconds, dict(self.row), None)
        self.story.live.pop(self.id)
        return self

    def leave(self, seconds: float, event: str, delay: float = 0, **values: object) -> "Told":
        """Out of the worker's hands, and not over."""
        if event not in _GIVEN_BACK:
            self.attempt(seconds, status="FAILED", final=False)
        return self.change(
            seconds,
            status=_STAYS[event],
            worker_id=None,
            claimed_at=None,
            rank=None,
            available_at=at(seconds + delay),
            attempt_number=self.row["attempt_number"] - (event in _GIVEN_BACK),
            **values,
        )

    def attempt(self, seconds: float, **values: object) -> None:
        known = {
            "started_at": self.row["claimed_at"],
            "finished_at": at(seconds),
            "error": None,
            "labels": None,
            "payload": None,
            "retry_of": None,
            "idempotency_key": None,
        }
        self.story.attempts.append(dict(self.row) | known | values)

    def run(self, seconds: float, lasts: float = 0.2) -> "Told":
        """Claimed, begun, done and over."""
        self.claim(seconds).tell("begun", seconds + lasts / 4)
        return self.tell("done", seconds + lasts / 2).end(seconds + lasts)


class Story:
    def __init__(self) -> None:
        self.jobs: list[MutableRow] = []
        self.versions: list[MutableRow] = []
        self.live: dict[UUID, MutableRow] = {}
        self.attempts: list[MutableRow] = []
        self.skips: list[MutableRow] = []
        self.letters: list[MutableRow] = []
        self.workers: list[MutableRow] = []
        self.limits: list[MutableRow] = []
        self.rate_starts: list[MutableRow] = []
        self.queues: list[MutableRow] = []
        self.queue_changes: list[Change] = []
        self.reports: list[MutableRow] = []
        self.changes: list[Change] = []
        self.leases: list[Change] = []
        self.effects: list[Effect] = []
        self.exchanges: list[Exchange] = []
        self.faults: list[Fault] = []
        self.samples: list[Sample] = []
        self.outcries: list[MutableRow] = []
        self._made = 0

    def _id(self) -> UUID:
        self._made += 1
        return UUID(int=self._made + 0x1000)

    def log(self, seconds: float, old: Row | None, new: Row | None) -> None:
        number = len(self.changes) + 1
        self.changes.append(Change(number, number, at(seconds), old, new))

    def job(self, name: str = "tick", schedule: Row = EVERY_SECOND, **definition: object) -> UUID:
        """There from the beginning."""
        id_ = self._id()
        said = {"timeout_seconds": 60, "cancel_grace_seconds": 2, "schedule": dict(schedule)}
        self.jobs.append(
            {
                "id": id_,
                "name": name,
                "status": "ACTIVE",
                "version": 1,
                "shard": 5,
                "created_at": BEGAN,
                "next_instant": None,
                "next_run_at": None,
                "last_instant": None,
            }
        )
        self.version(id_, 0, definition=said | definition)
        return id_

    def version(self, job_id: UUID, seconds: float, **values: object) -> MutableRow:
        """The next version of a job; what is not said stays as it was."""
        known = [row for row in self.versions if row["job_id"] == job_id]
        row = {
            "job_id": job_id,
            "schedule_version": 1,
            "status": "ACTIVE",
            "payload": None,
            "last_instant": None,
        }
        row |= (known[-1] if known else {}) | {"valid_from": at(seconds), "version": len(known) + 1}
        row |= values
        self.versions.append(row)
        return row

    def fire(self, job_id: UUID, seconds: float, **values: Any) -> Told:  # noqa: ANN401
        """An execution of the instant at this second, there a little later."""
        job = next(row for row in self.jobs if row["id"] == job_id)
        created = at(values.pop("fired", seconds + 0.05))
        row: MutableRow = {
            "id": self._id(),
            "tenant_id": TENANT,
            "job_id": job_id,
            "job_version": 1,
            "job_name": job["name"],
            "status": "QUEUED",
            "hold": None,
            "trigger": "SCHEDULE",
            "fence": 0,
            "attempt_number": 0,
            "crash_count": 0,
            "run_alone": False,
            "rank": 1.0,
            "worker_id": None,
            "queue": "default",
            "limit_keys": None,
            "scheduled_time": at(seconds),
            "available_at": at(seconds),
            "created_at": created,
            "queued_at": created,
            "claimed_at": None,
            "cancel_requested_at": None,
            "start_by": None,
        } | values
        told = Told(self, row)
        self.live[told.id] = row
        self.log((created - BEGAN).total_seconds(), None, dict(row))
        return told

    def skip(
        self, job_id: UUID, first: float, last: float, reason: str, **values: object
    ) -> MutableRow:
        row: MutableRow = {
            "job_id": job_id,
            "schedule_version": 1,
            "from_instant": at(first),
            "to_instant": at(last),
            "count": round(last - first) + 1,
            "reason": reason,
            "recorded_at": at(last + 0.05),
        } | values
        self.skips.append(row)
        return row

    def letter(self, told: Told, reason: str, **values: object) -> MutableRow:
        row: MutableRow = {
            "id": told.id,
            "job_id": told.row["job_id"],
            "job_name": told.row["job_name"],
            "reason": reason,
            "total_attempts": told.row["attempt_number"],
            "failed_at": BEGAN,
            "payload": None,
            "replayed_as": None,
        } | values
        self.letters.append(row)
        return row

    def worker(self, id_: UUID = WORKER, name: str = "worker-1.1") -> None:
        times = {"registered_at": BEGAN, "last_heartbeat_at": at(59)}
        self.workers.append({"id": id_, "name": name, "status": "ACTIVE"} | times)

    def exchange(self, action: str, sent: float, status: int | None = 200, **more: Any) -> None:  # noqa: ANN401
        known: MutableRow = {"key": None, "body": {}, "answer": None}
        answered = None if status is None else FELT + sent + 0.1
        self.exchanges.append(
            Exchange(
                action=action, sent=FELT + sent, answered=answered, status=status, **known | more
            )
        )

    def fault(self, kind: str, victim: str, low: float, high: float, **detail: object) -> None:
        self.faults.append(Fault(kind, victim, FELT + low, FELT + high, at(low), detail=detail))

    def lease(self, seconds: float, old: Row | None, new: Row | None) -> None:
        number = len(self.leases) + 1
        self.leases.append(Change(number, number, at(seconds), old, new))

    def gate(self, seconds: float, *, paused: bool, name: str = "default") -> None:
        """The queue is paused, or goes on."""
        before = [one.new for one in self.queue_changes if one.new and one.new["name"] == name]
        row = {
            "name": name,
            "paused_at": at(seconds) if paused else None,
            "concurrency_limit": None,
        }
        number = len(self.queue_changes) + 1
        old = before[-1] if before else None
        self.queue_changes.append(Change(number, number, at(seconds), old, row))

    def sample(self, seconds: float, **values: Any) -> None:  # noqa: ANN401
        known: MutableRow = {
            "nodes": {"worker-1": {"pid": 1, "rss_bytes": 50_000_000, "descriptors": 30}},
            "connections": 20,
            "idle_in_transaction_seconds": 0.0,
            "owned_shards": 64,
            "live_rows": 0,
        }
        self.samples.append(Sample(monotonic=FELT + seconds, at=at(seconds), **known | values))

    def facts(self, read: float = 60, calm: float = 30) -> Facts:
        return Facts(
            began_at=BEGAN,
            calm_at=at(calm),
            read_at=at(read),
            calm=FELT + calm,
            jobs=tuple(self.jobs),
            job_versions=tuple(self.versions),
            executions=tuple(self.live.values()),
            attempts=tuple(self.attempts),
            skips=tuple(self.skips),
            dead_letters=tuple(self.letters),
            workers=tuple(self.workers),
            limits=tuple(self.limits),
            rate_starts=tuple(self.rate_starts),
            shard_leases=(),
            execution_changes=tuple(self.changes),
            lease_changes=tuple(self.leases),
            effects=tuple(self.effects),
            exchanges=tuple(self.exchanges),
            faults=tuple(self.faults),
            samples=tuple(self.samples),
            outcries=tuple(self.outcries),
            queues=tuple(self.queues),
            queue_changes=tuple(self.queue_changes),
            reports=tuple(self.reports),
            seed=1,
        )


def five_seconds(story: Story, **definition: Any) -> UUID:  # noqa: ANN401
    """A job that came every second and is paused after its fifth instant."""
    job_id = story.job(**definition)
    story.version(job_id, 5.5, status="PAUSED", last_instant=at(5))
    return job_id


def judge(story: Story, name: str, read: float = 60) -> Verdict:
    """What one invariant says of a story."""
    findings = Findings()
    INVARIANTS[name](History(story.facts(read)), findings)
    return findings.verdict(name, 0)


def titles(story: Story, name: str, read: float = 60) -> list[str]:
    return [one.title for one in judge(story, name, read).violations]


def begun() -> tuple[Story, Told]:
    """Two workers, a job, and an execution of it that waits."""
    story = Story()
    story.worker()
    story.worker(OTHER_WORKER, "worker-2.1")
    return story, story.fire(story.job(), 1)


def lost() -> tuple[Story, Told]:
    """Its worker froze and comes to its end after another has done so."""
    story, told = begun()
    told.claim(1.1).tell("begun", 1.2)
    story.fault("stop worker", "worker-1", 1.3, 24)
    story.workers[0]["last_heartbeat_at"] = at(1.2)
    told.leave(20, "LOSE", run_alone=True).release(20.1).claim(21, OTHER_WORKER)
    told.tell("begun", 21.1).tell("done", 21.2).end(21.3)
    return story, told
