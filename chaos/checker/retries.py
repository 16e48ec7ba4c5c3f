"""How often and how soon something is tried again, and what becomes of what is given up.

An attempt that was handed back or snoozed costs nothing; one whose worker died stays counted. A
death shared with others sends an execution to run alone, even without an attempt left, so it can
have one attempt more than its policy allows. From then on each death is its own.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import History, Hold
from chaos.checker.verdict import Findings
from chaos.facts import Row

_ROUNDING: Final = timedelta(milliseconds=1)
_DEFAULTS: Final[Row] = {
    "max_attempts": 4,
    "backoff": "EXPONENTIAL",
    "initial_delay_seconds": 1,
    "multiplier": 2,
    "max_delay_seconds": 60,
    "jitter": 0.25,
    "max_crashes": 3,
    "poison_window_seconds": None,
}
_POISON_FAILURES: Final = 3
_FAILED: Final = frozenset({"FAILED", "TIMED_OUT"})
# No handler of a run forbids another attempt, none is given what it cannot read, no target answers
# with a 4xx: whatever fails may succeed later.
_NEVER_MEANT: Final = frozenset({"NON_RETRYABLE"})
# Of these a target may ask for a longer delay.
_MAY_ASK_FOR_MORE: Final = "HTTP_ERROR"


def policy_of(history: History, row: Row) -> Row:
    return {**_DEFAULTS, **(history.policy(row).get("retry_policy") or {})}


def check_retries_bounded(history: History, findings: Findings) -> None:
    for id_, attempts in history.attempts.items():
        failed = [row for row in attempts if row["status"] in _FAILED and row["claimed_at"]]
        if not failed:
            continue
        findings.saw(len(failed))
        policy = policy_of(history, attempts[0])
        holds = history.holds.get(id_, [])
        for title in _too_many(policy, attempts, holds):
            findings.violate(title, map(words.attempt, attempts))
        ends = {row["fence"]: row for row in failed}
        for place, hold in enumerate(holds):
            row = ends.get(hold.fence)
            if hold.event == "RETRY" and row is not None:
                following = holds[place + 1] if place + 1 < len(holds) else None
                _check_delay(policy, hold, row, following, findings)


def _too_many(policy: Row, attempts: Sequence[Row], holds: Sequence[Hold]) -> Iterator[str]:
    lost = [hold for hold in holds if hold.event == "LOSE"]
    shared = [hold for hold in lost if not hold.claim["run_alone"]]
    most = policy["max_attempts"] + bool(shared)
    highest = max(row["attempt_number"] for row in attempts)
    if highest > most:
        yield f"{highest} attempts, its policy allows {most}"
    if len(shared) > 1:
        yield f"it shared {len(shared)} deaths; after the first it must run alone"
    crashes = max((_crashes(hold) for hold in holds), default=0)
    if crashes >= policy["max_crashes"]:
        yield f"it goes on after {crashes} crashes of its own of {policy['max_crashes']} at most"


def _crashes(hold: Hold) -> int:
    row = None if hold.ended is None else hold.ended.new
    count: int = 0 if row is None else row["crash_count"]
    return count


def _check_delay(
    policy: Row, hold: Hold, row: Row, following: Hold | None, findings: Findings
) -> None:
    low, high = delay_bounds(policy, row["attempt_number"])
    new = None if hold.ended is None else hold.ended.new
    if new is None:
        return
    records = [words.attempt(row), *(words.change(one) for one in [hold.ended] if one is not None)]
    delay = new["available_at"] - row["finished_at"]
    asks = (row.get("error") or {}).get("type") == _MAY_ASK_FOR_MORE
    if delay < low - _ROUNDING or (delay > high + _ROUNDING and not asks):
        title = f"it is retried after {delay}, its policy says {low} to {high}"
        findings.violate(title, records)
    if following is not None and following.claim["claimed_at"] < row["finished_at"] + low:
        title = f"it was claimed again within its delay of at least {low}"
        findings.violate(title, [*records, words.change(following.claimed)])


def delay_bounds(policy: Row, attempt_number: int) -> tuple[timedelta, timedelta]:
    """The shortest and the longest delay after an attempt."""
    first, cap, jitter = (
        policy["initial_delay_seconds"],
        policy["max_delay_seconds"],
        policy["jitter"],
    )
    factor = {
        "FIXED": 1.0,
        "LINEAR": float(attempt_number),
        "EXPONENTIAL": float(policy["multiplier"]) ** (attempt_number - 1),
    }[policy["backoff"]]
    low, high = (min(cap, first * factor * (1 + sign * jitter)) for sign in (-1, 1))
    return timedelta(seconds=low), timedelta(seconds=high)


def check_dead_letters_once(history: History, findings: Findings) -> None:
    letters: dict[UUID, Row] = {}
    for row in history.facts.dead_letters:
        if row["id"] in letters:
            findings.violate("two dead letters of one execution", [words.letter(row)])
        letters[row["id"]] = row
    for id_, final in history.finals.items():
        letter = letters.get(id_)
        if final["status"] in _FAILED:
            findings.saw()
            if letter is None:
                findings.violate("given up without a dead letter", [words.attempt(final)])
        elif letter is not None:
            title = f"a dead letter of what is {final['status']}"
            findings.violate(title, [words.attempt(final), words.letter(letter)])
    for id_, letter in letters.items():
        last = history.finals.get(id_)
        if last is None:
            findings.violate("a dead letter of what is not over", [words.letter(letter)])
        elif last["status"] in _FAILED:
            for title in _wrong_letter(history, letter, last):
                findings.violate(title, [words.letter(letter), words.attempt(last)])
    _check_replays(history, letters, findings)


def _wrong_letter(history: History, letter: Row, final: Row) -> Iterator[str]:
    policy, reason = policy_of(history, final), letter["reason"]
    error = (final.get("error") or {}).get("type")
    number = final["attempt_number"]
    if letter["total_attempts"] != number:
        yield f"it tells of {letter['total_attempts']} attempts, history of {number}"
    if (reason == "EXPIRED") != (error == "EXPIRED"):
        yield f"its reason is {reason}, its error {error}"
    if reason == "EXHAUSTED" and number < policy["max_attempts"]:
        yield f"given up after {number} attempts, its policy allows {policy['max_attempts']}"
    if reason in _NEVER_MEANT:
        yield f"given up as {reason} ({error}), and nothing in a run says so of itself"
    if reason == "POISON" and not _is_poison(history, final, policy):
        yield f"called poison, with fewer crashes than {policy['max_crashes']}"
    if _payload(history, final) != letter["payload"]:
        yield "its payload is not the execution's"


def _payload(history: History, final: Row) -> object:
    if final["payload"] is not None:
        payload: object = final["payload"]
        return payload
    version = history.version(final["job_id"], final["job_version"])
    return None if version is None else version["payload"]


def _is_poison(history: History, final: Row, policy: Row) -> bool:
    """It crashed alone often enough, the last one included, or failed too fast."""
    holds = history.holds.get(final["id"], [])
    if holds and holds[-1].claim["crash_count"] + 1 >= policy["max_crashes"]:
        return True
    window = policy["poison_window_seconds"]
    if window is None:
        return False
    since: datetime = final["finished_at"] - timedelta(seconds=window)
    recent = [row for row in history.attempts[final["id"]] if row["finished_at"] > since]
    return len(recent) >= _POISON_FAILURES


def _check_replays(history: History, letters: dict[UUID, Row], findings: Findings) -> None:
    """A replay makes one new execution, and the letter names it."""
    made: dict[UUID, dict[UUID, Row]] = defaultdict(dict)
    for row in (*history.facts.attempts, *history.facts.executions):
        if row["trigger"] == "REPLAY":
            made[row["retry_of"]][row["id"]] = row
    for id_, rows in made.items():
        findings.saw()
        if len(rows) > 1:
            title = f"a dead letter was replayed {len(rows)} times"
            findings.violate(title, map(words.execution, rows.values()))
        if id_ not in letters:
            findings.violate("a replay of no dead letter", map(words.execution, rows.values()))
    for id_, letter in letters.items():
        again = letter["replayed_as"]
        if again is not None and again not in made[id_]:
            findings.violate("replayed as what never was", [words.letter(letter)])
