"""Pieces of the sentences in which reasons are told: times, spans, counts, errors, holders."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from foliot.core.explanation import Holder
from foliot.core.model import Json
from foliot.core.phrases import join

# Nobody waits for the count of more than this.
COUNT_MAX: Final = 1000
_ERROR_LENGTH_MAX: Final = 200
_UNITS: Final = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "h"), (120.0, 60.0, "min"))


def at(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_until(moment: datetime, now: datetime) -> float:
    return round((moment - now).total_seconds(), 3)


def seconds_since(moment: datetime, now: datetime) -> float:
    """None are below zero: clocks can be told."""
    return max(0.0, seconds_until(now, moment))


def span(seconds: float) -> str:
    """ "3 days", "4 h", "35 min", "12 s", "0.4 s"."""
    for least, unit, word in _UNITS:
        if seconds >= least:
            return f"{seconds / unit:.0f} {word}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def executions(number: int) -> str:
    """A count that ends at COUNT_MAX and one."""
    if number > COUNT_MAX:
        return f"over {COUNT_MAX:,} executions"
    return "1 execution" if number == 1 else f"{number:,} executions"


def error_words(error: Json) -> str:
    """Its type and message, on one line."""
    if not isinstance(error, dict):
        return ""
    parts = [str(error[name]) for name in ("type", "message") if error.get(name)]
    told = " ".join(": ".join(parts).split())
    return told if len(told) <= _ERROR_LENGTH_MAX else f"{told[: _ERROR_LENGTH_MAX - 1]}…"


def holder_words(holders: Sequence[Holder]) -> str:
    """Which ones, since when and where."""
    return join(
        [
            f"{each.execution_id} of job {each.job_name} is {each.status} since {at(each.since)}"
            + (f" on worker {each.worker}" if each.worker else "")
            for each in holders
        ]
    )


def holder_details(holders: Sequence[Holder]) -> list[dict[str, Json]]:
    return [{name: getattr(each, name) for name in Holder.__slots__} for each in holders]


def sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
