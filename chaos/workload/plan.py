"""All the jobs that a run begins with: pure, and the same for a seed each time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from chaos.workload.kinds import (
    GATED,
    KINDS,
    MANY,
    NARROW,
    QUEUES,
    Body,
    Kind,
    PlannedJob,
    call,
    every,
    job,
)

_WHOLE: Final = 100.0  # the instants a second that the counts of the kinds are for
NARROW_LIMIT: Final = 2
# Where nobody listens: for whoever only wants to see a plan.
NOWHERE: Final = "http://127.0.0.1:9"
_SLOW: Final = {"seconds": 4.0}
_DOOMED: Final = {"max_attempts": 2, "max_crashes": 20, "initial_delay_seconds": 0.5}


@dataclass(frozen=True, slots=True)
class Plan:
    """`jobs` in the order in which they can be made: none comes before what it follows."""

    seed: int
    instants_per_second: float
    jobs: tuple[PlannedJob, ...]

    def chance(self, purpose: str) -> Random:
        """The same numbers for the same purpose each time."""
        return seeded(self.seed, purpose)

    def kind_of(self, name: str) -> str:
        """Of a job by its name, also one that was made later: the name without its number."""
        return name.rpartition("-")[0]


def seeded(seed: int, purpose: str) -> Random:
    return Random(f"{seed} {purpose}")  # noqa: S311 - it is to come out the same each time


def plan_jobs(seed: int, instants_per_second: float, target: str = NOWHERE) -> Plan:
    """Some of each kind, and as many plain crons as it takes. HTTP jobs call `target`."""
    chance = seeded(seed, "jobs")
    planned = [*_of_kinds(chance, instants_per_second / _WHOLE), *_parents()]
    rate = sum(one.rate for one in planned)
    number = 0
    while rate < instants_per_second or number < 15:
        planned.append(_planned(MANY, chance, number))
        rate += planned[-1].rate
        number += 1
    jobs = (_placed(one, target) for one in (*planned, *_asked(), *_followers()))
    return Plan(seed, instants_per_second, tuple(jobs))


def _of_kinds(chance: Random, scale: float) -> Iterator[PlannedJob]:
    for kind in KINDS:
        for number in range(max(kind.least, round(kind.count * scale))):
            yield _planned(kind, chance, number)


def _planned(kind: Kind, chance: Random, number: int) -> PlannedJob:
    body, rate = kind.make(chance, number)
    return PlannedJob(kind.name, _finished(kind.name, number, body, chance), rate)


def _finished(kind: str, number: int, body: Body, chance: Random) -> Body:
    plain = {
        "name": f"{kind}-{number:03}",
        "queue": chance.choice(QUEUES),
        "priority": chance.randint(1, 10),
        "labels": {"kind": kind},
    }
    return plain | body


def _placed(planned: PlannedJob, target: str) -> PlannedJob:
    """With the whole address of what it calls, which ends in its name."""
    body = planned.body
    if body["target"]["type"] != "HTTP":
        return planned
    url = f"{target}{body['target']['url']}/{body['name']}"
    return replace(planned, body=body | {"target": body["target"] | {"url": url}})


def _parents() -> Iterator[PlannedJob]:
    for number, (handler, seconds) in enumerate((("quick", 3), ("quick", 4))):
        yield _plain("parent", number, job(handler, every(seconds)), 1 / seconds)
    failing = job("stumble", every(15), {"failures": 1000}, retry_policy=dict(_DOOMED))
    yield _plain("parent", 2, failing, 1 / 15)


def _followers() -> Iterator[PlannedJob]:
    """The third parent always fails; the last one follows a follower."""
    first, second, failing = "parent-000", "parent-001", "parent-002"
    for number, (handler, after, overlap) in enumerate(
        (
            ("quick", {"jobs": [first, second], "mode": "ALL", "on": "SUCCEEDED"}, "SKIP"),
            ("quick", {"jobs": [first, second], "mode": "ANY", "on": "SUCCEEDED"}, "ALLOW"),
            ("quick", {"jobs": [failing], "mode": "ALL", "on": "FINISHED"}, "SKIP"),
            ("slow", {"jobs": [first], "mode": "ANY", "on": "FINISHED"}, "SKIP"),
            ("slow", {"jobs": [second], "mode": "ALL", "on": "SUCCEEDED"}, "QUEUE_ONE"),
            ("slow", {"jobs": [first], "mode": "ALL", "on": "SUCCEEDED"}, "CANCEL_PREVIOUS"),
            ("quick", {"jobs": ["follower-000"], "mode": "ALL", "on": "SUCCEEDED"}, "QUEUE_ALL"),
        )
    ):
        schedule = {"type": "AFTER", "after": after, "overlap_policy": overlap}
        payload = dict(_SLOW) if handler == "slow" else None
        yield _plain("follower", number, job(handler, schedule, payload), 0)


def _asked() -> Iterator[PlannedJob]:
    """What runs only when a client asks for it."""
    manual = {"type": "MANUAL"}
    limit = {"concurrency": {"limit": 2}}
    keyed = {"concurrency": {"key": "asked", "limit": 2}}
    rate = {"rate_limit": {"count": 3, "period_seconds": 2}}
    soon = {"concurrency": {"limit": 1}, "start_deadline_seconds": 3}
    doomed = {"retry_policy": dict(_DOOMED)}
    for kind, body in {
        "asked-quick": job("quick", manual, {"seconds": 0.02}),
        "asked-apart": job("apart", manual, {"seconds": 0.1}),
        "asked-slow": job("slow", manual, dict(_SLOW)),
        "asked-deaf": job("deaf", manual, timeout_seconds=8, cancel_grace_seconds=0.5, **doomed),
        "asked-stumbling": job("stumble", manual, {"failures": 1}),
        "asked-doomed": job("stumble", manual, {"failures": 1000}, **doomed),
        "asked-limited": job("slow", manual, {"seconds": 0.3}, **limit),
        "asked-keyed": job("slow", manual, {"seconds": 0.3}, **keyed),
        "asked-rated": job("quick", manual, **rate),
        "asked-soon": job("slow", manual, {"seconds": 0.8}, **soon),
        "asked-unique": job("slow", manual, {"seconds": 1.0}),
        "asked-narrow": job("quick", manual, queue=NARROW),
        "asked-gated": job("quick", manual, queue=GATED),
        "asked-called": job("", manual, {"seconds": 2.0}) | call("slow"),
    }.items():
        yield _plain(kind, 0, body, 0)


def _plain(kind: str, number: int, body: Body, rate: float) -> PlannedJob:
    named = {"name": f"{kind}-{number:03}", "labels": {"kind": kind}}
    return PlannedJob(kind, named | body, rate)
