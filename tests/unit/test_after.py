"""When a job that follows others fires, and with which of their executions."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from foliot.core.ids import ExecutionId, JobId
from foliot.core.model import After, AfterMode, AfterOn, MisfirePolicy
from foliot.core.schedule.after import Completion, Fire, Wait, decide, is_missed
from foliot.core.states import TERMINAL, ExecutionState

ETL, BILLING, OTHER = (JobId(UUID(int=number)) for number in (1, 2, 3))
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


def done(
    job: JobId,
    number: int,
    status: ExecutionState = ExecutionState.SUCCEEDED,
    minute: int = 0,
) -> Completion:
    at = NOON + timedelta(minutes=minute)
    return Completion(job, ExecutionId(UUID(int=100 + number)), status, at)


def execution(number: int) -> ExecutionId:
    return ExecutionId(UUID(int=100 + number))


BOTH = After((ETL, BILLING))
EITHER = After((ETL, BILLING), AfterMode.ANY)


def test_all_waits_for_every_parent() -> None:
    assert decide(BOTH, []) == Wait((ETL, BILLING))
    assert decide(BOTH, [done(BILLING, 1)]) == Wait((ETL,))


def test_all_fires_with_every_parent_in_the_order_of_the_schedule() -> None:
    completions = [done(BILLING, 2, minute=5), done(ETL, 1, minute=9)]
    assert decide(BOTH, completions) == Fire(
        (execution(1), execution(2)), NOON + timedelta(minutes=9)
    )


def test_any_fires_with_the_parents_that_completed() -> None:
    assert decide(EITHER, []) == Wait((ETL, BILLING))
    assert decide(EITHER, [done(BILLING, 2)]) == Fire((execution(2),), NOON)
    both = decide(EITHER, [done(ETL, 1), done(BILLING, 2)])
    assert both == Fire((execution(1), execution(2)), NOON)


def test_a_parent_counts_by_its_newest_completion() -> None:
    completions = [done(ETL, 1, minute=1), done(ETL, 3, minute=3), done(ETL, 2, minute=2)]
    assert decide(EITHER, completions) == Fire((execution(3),), NOON + timedelta(minutes=3))


def test_a_tie_is_broken_the_same_way_on_every_node() -> None:
    tied = [done(ETL, 1), done(ETL, 2)]
    assert decide(EITHER, tied) == decide(EITHER, tied[::-1]) == Fire((execution(2),), NOON)


def test_a_later_failure_does_not_undo_a_success() -> None:
    completions = [
        done(ETL, 1, minute=1),
        done(ETL, 2, ExecutionState.FAILED, minute=2),
    ]
    assert decide(After((ETL,)), completions) == Fire((execution(1),), NOON + timedelta(minutes=1))


def test_other_jobs_are_passed_over() -> None:
    assert decide(EITHER, [done(OTHER, 1)]) == Wait((ETL, BILLING))


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_which_ends_count(status: ExecutionState) -> None:
    ran = {"SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED"}
    finished = decide(After((ETL,), on=AfterOn.FINISHED), [done(ETL, 1, status)])
    succeeded = decide(After((ETL,), on=AfterOn.SUCCEEDED), [done(ETL, 1, status)])
    assert isinstance(finished, Fire) == (status in ran)
    assert isinstance(succeeded, Fire) == (status == "SUCCEEDED")


@pytest.mark.parametrize(
    ("policy", "late_seconds", "missed"),
    [
        (MisfirePolicy.SKIP, 60, False),
        (MisfirePolicy.SKIP, 61, True),
        (MisfirePolicy.FIRE_ONCE, 86_400, False),
        (MisfirePolicy.FIRE_ALL, 86_400, False),
    ],
)
def test_only_who_skips_what_is_late_misses_it(
    policy: MisfirePolicy, late_seconds: int, missed: bool
) -> None:
    fire = Fire((execution(1),), NOON)
    assert is_missed(policy, fire, NOON + timedelta(seconds=late_seconds)) is missed
