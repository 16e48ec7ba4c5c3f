"""The kinds of jobs of a run, each with a body for `POST /v1/jobs` that says all that is expected.

A job is made from its number within its kind and from chance, so a seed gives the same jobs each
time. Costly kinds come seldom: what runs at once stays below what one of three workers can do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

Body = dict[str, Any]

OVERLAPS: Final = ("SKIP", "ALLOW", "QUEUE_ONE", "QUEUE_ALL", "CANCEL_PREVIOUS")
MISFIRES: Final = ("FIRE_ONCE", "FIRE_ALL", "SKIP")
QUEUES: Final = ("default", "red", "blue")
NARROW: Final = "narrow"
# The queues that clients pause: nobody else waits in them.
GATED: Final = "gated"
PAUSED: Final = (GATED, NARROW)
# The jobs that clients edit, pause and resume.
CHANGED: Final = "changed"
# Expressions that fire only in a part of each hour or day, by a clock that is not UTC.
ZONED: Final = (
    ("*/2 0-29 * * * *", "Asia/Kathmandu"),
    ("*/2 30-59 * * * *", "Australia/Lord_Howe"),
    ("*/3 1-59/2 * * * *", "America/New_York"),
    ("*/4 0-58/2 * * * *", "America/St_Johns"),
    ("5,15,25,35,45,55 * 0-11 * * *", "Europe/Berlin"),
    ("5,15,25,35,45,55 * 12-23 * * *", "Europe/Berlin"),
    ("*/5 0,7,14,21,28,35,42,49,56 * * * *", "Pacific/Chatham"),
)
# Whoever only loses its worker, however often, succeeds in the end.
STURDY: Final[Mapping[str, float]] = {
    "max_attempts": 20,
    "max_crashes": 20,
    "initial_delay_seconds": 0.2,
    "max_delay_seconds": 2,
}
BACKOFFS: Final[tuple[Mapping[str, Any], ...]] = (
    {"backoff": "FIXED", "initial_delay_seconds": 0.5, "jitter": 0},
    {"backoff": "LINEAR", "initial_delay_seconds": 0.4, "jitter": 0.25},
    {"backoff": "EXPONENTIAL", "initial_delay_seconds": 0.3, "jitter": 0.5},
)


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """`rate`: how many instants a second it has; 0 for what only runs when asked."""

    kind: str
    body: Body
    rate: float


@dataclass(frozen=True, slots=True)
class Kind:
    """`count`: how many there are at a hundred instants a second, `least` at the fewest."""

    name: str
    count: int
    make: Callable[[Random, int], tuple[Body, float]]
    least: int = 1


def every(seconds: int, **fields: object) -> Body:
    """A cron schedule; the seconds divide a minute."""
    return {"type": "CRON", "cron_expression": f"*/{seconds} * * * * *", **fields}


def job(handler: str, schedule: Body, payload: Body | None = None, **fields: object) -> Body:
    return {
        "schedule": schedule,
        "target": {"type": "HANDLER", "name": handler},
        "payload": payload or {},
        "retry_policy": dict(STURDY),
        "timeout_seconds": 60,
        "cancel_grace_seconds": 2,
        **fields,
    }


def call(behaviour: str) -> Body:
    """The sink as a target; where it listens is known only when it runs."""
    return {"target": {"type": "HTTP", "url": f"/{behaviour}", "method": "POST"}}


def tick(chance: Random, number: int) -> tuple[Body, float]:
    """The many: every pair of overlap and misfire policy in turn."""
    overlap, misfire = OVERLAPS[number % 5], MISFIRES[number // 5 % 3]
    # Held ones run one after the other, so they need room between them.
    periods = (3, 4, 5) if overlap == "QUEUE_ALL" else (1, 1, 1, 2, 2, 3, 4, 5)
    seconds = chance.choice(periods)
    schedule = every(seconds, overlap_policy=overlap, misfire_policy=misfire)
    if number % 7 == 3:
        schedule["misfire_grace_seconds"] = 10
    if misfire == "FIRE_ALL":
        schedule["misfire_max_runs"] = chance.choice((3, 10, 100))
    tags = [CHANGED] if number % 3 == 0 else []
    deadline = {"start_deadline_seconds": 60} if number % 11 == 5 else {}
    body = job("quick", schedule, {"seconds": chance.choice((0, 0.02, 0.05))}, tags=tags)
    return body | deadline, 1 / seconds


def zoned(_: Random, number: int) -> tuple[Body, float]:
    expression, timezone = ZONED[number % len(ZONED)]
    schedule = {"type": "CRON", "cron_expression": expression, "timezone": timezone}
    schedule |= {"misfire_policy": MISFIRES[number % 3]}
    return job("quick", schedule, tags=[CHANGED] if number % 3 == 0 else []), 0.15


def interval(chance: Random, number: int) -> tuple[Body, float]:
    seconds = chance.choice((0.8, 1.25, 1.5, 2.2, 3.7))
    schedule = {"type": "INTERVAL", "interval_seconds": seconds}
    schedule |= {"misfire_policy": MISFIRES[number % 3], "overlap_policy": OVERLAPS[number % 3]}
    return job("quick", schedule, tags=[CHANGED] if number % 2 == 0 else []), 1 / seconds


def jittered(chance: Random, _: int) -> tuple[Body, float]:
    return job("quick", every(4, jitter_seconds=chance.choice((1, 2, 3)))), 1 / 4


def bounded(chance: Random, _: int) -> tuple[Body, float]:
    """Over after a number of fires."""
    schedule = every(2, max_runs=chance.randint(5, 40), misfire_policy="FIRE_ALL")
    return job("quick", schedule), 1 / 20


def apart(chance: Random, number: int) -> tuple[Body, float]:
    seconds = chance.choice((3, 4, 5))
    schedule = every(seconds, overlap_policy=OVERLAPS[number % 3])
    return job("apart", schedule, {"seconds": 0.2}), 1 / seconds


def overlap(_: Random, number: int) -> tuple[Body, float]:
    """Works longer than its period, but for those that are held one behind the other."""
    policy = OVERLAPS[number % 5]
    seconds, work = {
        "SKIP": (2, 3.0),
        "ALLOW": (3, 2.8),
        "QUEUE_ONE": (2, 2.5),
        "QUEUE_ALL": (5, 1.4),
        "CANCEL_PREVIOUS": (3, 4.0),
    }[policy]
    schedule = every(seconds, overlap_policy=policy, misfire_policy=MISFIRES[number // 5 % 3])
    tags = [CHANGED] if number >= 5 else []
    return job("slow", schedule, {"seconds": work}, tags=tags), 1 / seconds


def lasting(_: Random, __: int) -> tuple[Body, float]:
    """Runs for longer than a worker may be silent: nobody is rescued for that."""
    schedule = {"type": "CRON", "cron_expression": "0 */2 * * * *", "overlap_policy": "ALLOW"}
    return job("slow", schedule, {"seconds": 20}), 1 / 120


def stumbling(chance: Random, number: int) -> tuple[Body, float]:
    policy = {"max_attempts": 8, "max_crashes": 20, "max_delay_seconds": 3}
    policy |= BACKOFFS[number % 3]
    payload = {"failures": chance.choice((1, 2))}
    return job("stumble", every(5), payload, retry_policy=policy), 1 / 5


def doomed(_: Random, number: int) -> tuple[Body, float]:
    policy = {"max_attempts": 2 + number % 2, "max_crashes": 20, "max_delay_seconds": 3}
    policy |= BACKOFFS[number % 3]
    schedule = every(15, overlap_policy="ALLOW")
    return job("stumble", schedule, {"failures": 1000}, retry_policy=policy), 1 / 15


def hanging(_: Random, number: int) -> tuple[Body, float]:
    policy = {"max_attempts": 1 + number % 2, "max_crashes": 20, "initial_delay_seconds": 0.3}
    body = job("hang", every(15), retry_policy=policy)
    return body | {"timeout_seconds": 1.5, "cancel_grace_seconds": 1}, 1 / 15


def deaf(_: Random, __: int) -> tuple[Body, float]:
    policy = {"max_attempts": 1, "max_crashes": 20}
    body = job("deaf", every(15), retry_policy=policy)
    return body | {"timeout_seconds": 1, "cancel_grace_seconds": 0.5}, 1 / 15


def poison(_: Random, number: int) -> tuple[Body, float]:
    policy = {"max_attempts": 20, "max_crashes": 2, "initial_delay_seconds": 0.2}
    payload = {"way": ("exit", "segfault")[number % 2]}
    return job("poison", every(20), payload, retry_policy=policy), 1 / 20


def poison_shared(_: Random, number: int) -> tuple[Body, float]:
    body, _rate = poison(_, number)
    return body | {"target": {"type": "HANDLER", "name": "poison_shared"}}, 1 / 20


def snoozing(chance: Random, _: int) -> tuple[Body, float]:
    return job("snooze", every(4), {"snoozes": chance.choice((1, 2)), "seconds": 0.5}), 1 / 4


def limited_job(_: Random, __: int) -> tuple[Body, float]:
    schedule = every(1, overlap_policy="ALLOW", misfire_policy="SKIP")
    return job("slow", schedule, {"seconds": 0.6}, concurrency={"limit": 2}), 1.0


def limited_key(_: Random, number: int) -> tuple[Body, float]:
    """Several jobs share a key, plain or from the payload; all of them say the same limit."""
    user = f"user-{number // 2 % 2}"
    key = "${payload.user}" if number % 2 else user
    schedule = every(2, overlap_policy="ALLOW", misfire_policy="FIRE_ONCE")
    concurrency = {"key": key, "limit": 2}
    return job("slow", schedule, {"seconds": 0.5, "user": user}, concurrency=concurrency), 1 / 2


def narrow(_: Random, __: int) -> tuple[Body, float]:
    """In the queue that has a limit itself."""
    schedule = every(1, overlap_policy="ALLOW", misfire_policy="FIRE_ONCE")
    return job("slow", schedule, {"seconds": 0.2}, queue=NARROW), 1.0


def rated(_: Random, __: int) -> tuple[Body, float]:
    schedule = every(2, overlap_policy="ALLOW", misfire_policy="FIRE_ALL", misfire_max_runs=5)
    return job("quick", schedule, rate_limit={"count": 2, "period_seconds": 2}), 1 / 2


def deadline(_: Random, __: int) -> tuple[Body, float]:
    """Now and then not started in time, for one at a time is too few."""
    schedule = every(2, overlap_policy="ALLOW", misfire_policy="FIRE_ONCE")
    limits = {"concurrency": {"limit": 1}, "start_deadline_seconds": 4}
    return job("slow", schedule, {"seconds": 1.5}, **limits), 1 / 2


def unstorable(_: Random, number: int) -> tuple[Body, float]:
    what = ("nul", "surrogate", "not a number", "huge")[number % 4]
    return job("unstorable", every(10 if what == "huge" else 5), {"what": what}), 1 / 5


def gated(_: Random, number: int) -> tuple[Body, float]:
    """In a queue that is paused now and then."""
    schedule = every(1, overlap_policy="ALLOW", misfire_policy=MISFIRES[number % 3])
    return job("quick", schedule, {"seconds": 0.05}, queue=GATED), 1.0


def called(chance: Random, number: int) -> tuple[Body, float]:
    seconds = chance.choice((1, 2, 3))
    schedule = every(seconds, overlap_policy=OVERLAPS[number % 3])
    return job("", schedule, {"seconds": 0.1}) | call("quick"), 1 / seconds


def called_slow(_: Random, __: int) -> tuple[Body, float]:
    """Some are always under way."""
    schedule = every(3, overlap_policy="ALLOW", misfire_policy="FIRE_ONCE")
    return job("", schedule, {"seconds": 1.2}) | call("slow"), 1 / 3


def called_stumbling(_: Random, number: int) -> tuple[Body, float]:
    policy = {"max_attempts": 8, "max_crashes": 20, "max_delay_seconds": 3}
    policy |= BACKOFFS[number % 3]
    return job("", every(5), {"failures": 1}, retry_policy=policy) | call("stumble"), 1 / 5


KINDS: Final = (
    Kind("zoned", 7, zoned, least=2),
    Kind("interval", 9, interval),
    Kind("jittered", 2, jittered),
    Kind("bounded", 3, bounded),
    Kind("apart", 6, apart),
    Kind("overlap", 8, overlap, least=5),
    Kind("lasting", 1, lasting),
    Kind("stumbling", 6, stumbling, least=3),
    Kind("doomed", 3, doomed),
    Kind("hanging", 2, hanging),
    Kind("deaf", 1, deaf),
    Kind("poison", 2, poison, least=2),
    Kind("poison-shared", 1, poison_shared),
    Kind("snoozing", 3, snoozing),
    Kind("limited-job", 2, limited_job),
    Kind("limited-key", 4, limited_key, least=2),
    Kind("narrow", 3, narrow),
    Kind("rated", 2, rated),
    Kind("deadline", 1, deadline),
    Kind("unstorable", 4, unstorable),
    Kind("gated", 3, gated, least=2),
    Kind("called", 5, called, least=2),
    Kind("called-slow", 2, called_slow, least=2),
    Kind("called-stumbling", 2, called_stumbling),
)
# What the others leave of the instants that a second is to have.
MANY: Final = Kind("tick", 0, tick)
