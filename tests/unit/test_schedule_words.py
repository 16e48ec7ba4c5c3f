"""Every schedule can be said aloud."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from foliot.core.ids import JobId
from foliot.core.model import After, AfterMode, AfterOn, Schedule, ScheduleType
from foliot.core.schedule.words import describe

ETL, BILLING, AUDIT = (JobId(UUID(int=number)) for number in (1, 2, 3))
NAMES = {ETL: "etl", BILLING: "billing"}
NEW_YEAR = datetime(2027, 1, 1, 9, tzinfo=UTC)
TYPE = ScheduleType


def every(seconds: float) -> Schedule:
    return Schedule(TYPE.INTERVAL, interval_seconds=seconds)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (
            Schedule(TYPE.CRON, cron_expression="0 9 * * MON-FRI", timezone="America/New_York"),
            "every weekday at 09:00, New York time",
        ),
        (every(300), "every 5 minutes"),
        (every(60), "every minute"),
        (every(1), "every second"),
        (every(0.1), "every 0.1 seconds"),
        (every(1.5), "every 1.5 seconds"),
        (every(90), "every 90 seconds"),
        (every(3600), "every hour"),
        (every(86_400), "every 24 hours"),
        (Schedule(TYPE.ONE_TIME, run_at=NEW_YEAR), "once, at 2027-01-01 09:00 UTC"),
        (
            Schedule(TYPE.ONE_TIME, run_at=NEW_YEAR.replace(second=5, microsecond=250_000)),
            "once, at 2027-01-01 09:00:05.250000 UTC",
        ),
        (
            Schedule(TYPE.DELAYED, delay_seconds=1),
            "once, 1 second after it is created",
        ),
        (Schedule(TYPE.DELAYED, delay_seconds=0), "once, 0 seconds after it is created"),
        (Schedule(TYPE.IMMEDIATE), "once, at once"),
        (Schedule(TYPE.MANUAL), "only when triggered"),
        (Schedule(TYPE.AFTER, after=After((ETL, BILLING))), "after etl and billing succeed"),
        (Schedule(TYPE.AFTER, after=After((ETL,))), "after etl succeeds"),
        (
            Schedule(TYPE.AFTER, after=After((ETL, BILLING), AfterMode.ANY, AfterOn.FINISHED)),
            "after etl or billing finishes",
        ),
        (
            Schedule(TYPE.AFTER, after=After((ETL, AUDIT), on=AfterOn.FINISHED)),
            f"after etl and {AUDIT} finish",
        ),
        (
            Schedule(
                TYPE.INTERVAL,
                interval_seconds=7200,
                start_at=NEW_YEAR,
                end_at=NEW_YEAR.replace(year=2028),
                max_runs=10,
                jitter_seconds=60,
                calendar="bank",
            ),
            (
                "every 2 hours, from 2027-01-01 09:00 UTC, until 2028-01-01 09:00 UTC,"
                " at most 10 times, on the business days of calendar bank, spread over 1 minute"
            ),
        ),
    ],
)
def test_a_schedule_in_words(schedule: Schedule, words: str) -> None:
    assert describe(schedule, job_names=NAMES) == words


def test_the_hashed_minute_is_said_as_the_job_has_it() -> None:
    schedule = Schedule(TYPE.CRON, cron_expression="H 9 * * *")
    assert len({describe(schedule, seed=str(number)) for number in range(20)}) > 5
