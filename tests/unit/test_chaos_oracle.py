"""The oracle of the checker: other code than the product's, and the same instants."""

from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.oracle import CannotTell, instants
from foliot.core.ids import JobId
from foliot.core.schedule.occurrences import ScheduleFacts, occurrences
from foliot.store.definitions import schedule_from_json

MADE = datetime(2026, 3, 2, 12, 0, 0, 500_000, tzinfo=UTC)
JOB = JobId(UUID(int=7))


def of_product(
    schedule: dict[str, Any], made: datetime, after: datetime | None, until: datetime
) -> list[datetime]:
    facts = ScheduleFacts(JOB, made)
    coming = occurrences(schedule_from_json(schedule), facts, after)
    return list(takewhile(lambda at: at <= until, (one.instant for one in coming)))


def cron(expression: str, **fields: object) -> dict[str, Any]:
    return {"type": "CRON", "cron_expression": expression, **fields}


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [
        (cron("*/20 * * * * *"), [19.5, 39.5, 59.5]),
        (cron("*/25 * * * * *"), [24.5, 49.5, 59.5]),
        (cron("30 * * * * *"), [29.5]),
        (cron("@hourly"), []),
        ({"type": "INTERVAL", "interval_seconds": 25}, [25, 50]),
        (
            {"type": "INTERVAL", "interval_seconds": 25, "start_at": "2026-03-02T12:00:20Z"},
            [19.5, 44.5],
        ),
        (
            {"type": "INTERVAL", "interval_seconds": 25, "start_at": "2026-03-02T11:00:00Z"},
            [24.5, 49.5],
        ),
        ({"type": "INTERVAL", "interval_seconds": 25, "end_at": "2026-03-02T12:00:50.5Z"}, [25]),
        ({"type": "DELAYED", "delay_seconds": 7}, [7]),
        ({"type": "IMMEDIATE"}, [0]),
        ({"type": "ONE_TIME", "run_at": "2026-03-02T11:00:00+00:00"}, [-3600.5]),
        ({"type": "MANUAL"}, []),
    ],
)
def test_instants_by_hand(schedule: dict[str, Any], seconds: list[float]) -> None:
    found = instants(schedule, MADE, None, MADE + timedelta(seconds=60))
    assert [(at - MADE).total_seconds() for at in found] == seconds


@pytest.mark.parametrize(
    "schedule",
    [
        cron("H * * * *"),
        cron("* * * * *", calendar="bank"),
        cron("0 3 * * *", dst_gap="SKIP"),
        cron("0 3 * * *", dst_overlap="BOTH"),
    ],
)
def test_what_it_does_not_know_it_says(schedule: dict[str, Any]) -> None:
    with pytest.raises(CannotTell):
        instants(schedule, MADE, None, MADE + timedelta(days=1))


FIELDS = st.sampled_from(["*", "*/2", "*/7", "0-29", "30-58/3", "5,15,25", "0"])
ZONES = st.sampled_from(["UTC", "Asia/Kathmandu", "Australia/Lord_Howe", "America/New_York"])
MOMENTS = st.datetimes(datetime(2026, 11, 10), datetime(2026, 12, 20)).map(  # noqa: DTZ001
    lambda naive: naive.replace(tzinfo=UTC)
)


@settings(deadline=None, max_examples=150)
@given(st.tuples(FIELDS, FIELDS), ZONES, MOMENTS, st.integers(0, 3_000_000))
def test_cron_agrees_with_the_product(
    fields: tuple[str, str], zone: str, made: datetime, micros: int
) -> None:
    schedule = cron(f"{fields[0]} {fields[1]} * * * *", timezone=zone)
    after = made + timedelta(microseconds=micros)
    until = after + timedelta(seconds=400)
    assert instants(schedule, made, after, until) == of_product(schedule, made, after, until)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(["0-11", "12-23", "3", "*/5"]), ZONES, MOMENTS)
def test_hours_of_a_zone_agree_with_the_product(hours: str, zone: str, made: datetime) -> None:
    schedule = cron(f"20 7,37 {hours} * * *", timezone=zone)
    until = made + timedelta(days=2)
    assert instants(schedule, made, None, until) == of_product(schedule, made, None, until)


@settings(deadline=None, max_examples=150)
@given(st.integers(1, 59), MOMENTS)
def test_every_so_many_seconds_agrees_with_the_product(seconds: int, made: datetime) -> None:
    schedule = cron(f"*/{seconds} * * * * *")
    until = made + timedelta(seconds=130)
    assert instants(schedule, made, None, until) == of_product(schedule, made, None, until)


@settings(deadline=None, max_examples=200)
@given(
    st.floats(0.2, 90).map(lambda seconds: round(seconds, 3)),
    st.none() | st.integers(-500, 500),
    st.none() | st.integers(0, 300),
    st.integers(0, 200_000_000),
    MOMENTS,
)
def test_intervals_agree_with_the_product(
    seconds: float, start: int | None, end: int | None, micros: int, made: datetime
) -> None:
    schedule: dict[str, Any] = {"type": "INTERVAL", "interval_seconds": seconds}
    for name, offset in (("start_at", start), ("end_at", end)):
        if offset is not None:
            schedule[name] = (made + timedelta(seconds=offset)).isoformat()
    after = made + timedelta(microseconds=micros)
    until = made + timedelta(seconds=300)
    assert instants(schedule, made, after, until) == of_product(schedule, made, after, until)
