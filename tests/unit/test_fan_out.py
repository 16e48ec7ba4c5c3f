"""Does a list become instances, and do the instances become one end?"""

import pytest

from foliot.core.dag.conditions import Scope
from foliot.core.dag.fan_out import (
    INSTANCES_MAX,
    FanOut,
    FanOutDecision,
    Instance,
    begin_fan_out,
    expand,
    finish_instance,
)
from foliot.core.errors import ExpressionFailed
from foliot.core.model import Json
from foliot.core.states import ExecutionState

SUCCEEDED, FAILED = ExecutionState.SUCCEEDED, ExecutionState.FAILED
SKIPPED, CANCELLED = ExecutionState.SKIPPED, ExecutionState.CANCELLED


def test_a_list_becomes_indexed_instances() -> None:
    scope = Scope(results={"list": {"items": ["a", {"b": 1}]}})
    found = expand(FanOut("results.list.items"), scope)
    assert found == (Instance(0, "a"), Instance(1, {"b": 1}))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("text", "needs a list"),
        ({"a": 1}, "needs a list"),
        (None, "needs a list"),
        ([0] * (INSTANCES_MAX + 1), "10,001 members"),
    ],
)
def test_what_is_no_list_or_too_long_is_an_error(value: Json, says: str) -> None:
    with pytest.raises(ExpressionFailed, match=f"config.x: .*{says}"):
        expand(FanOut("config.x"), Scope(config={"x": value}))


def test_the_longest_list_is_accepted() -> None:
    scope = Scope(config=[0] * INSTANCES_MAX)
    assert len(expand(FanOut("config"), scope)) == INSTANCES_MAX


def play(total: int, limit: int | None, *ends: ExecutionState, stop: bool) -> list[FanOutDecision]:
    decisions = [begin_fan_out(total, limit)]
    for end in ends:
        decisions.append(finish_instance(decisions[-1].run, end, stop_on_failure=stop))
    return decisions


def test_instances_start_in_order_within_the_limit() -> None:
    decisions = play(4, 2, SUCCEEDED, SUCCEEDED, SUCCEEDED, SUCCEEDED, stop=True)
    assert [list(d.release) for d in decisions] == [[0, 1], [2], [3], [], []]
    assert [d.outcome for d in decisions] == [None, None, None, None, SUCCEEDED]


def test_without_a_limit_all_start_at_once() -> None:
    assert begin_fan_out(3, None).release == range(3)


def test_an_empty_list_has_succeeded() -> None:
    assert begin_fan_out(0, None).outcome is SUCCEEDED
    assert begin_fan_out(0, 5).outcome is SUCCEEDED


def test_a_failure_lets_no_other_start_and_asks_the_started_to_stop() -> None:
    failed = play(5, 2, FAILED, stop=True)[-1]
    assert failed.cancelled == range(2, 5)
    assert failed.cancel_started
    assert failed.outcome is None
    last = finish_instance(failed.run, CANCELLED, stop_on_failure=True)
    assert last.outcome is FAILED
    assert last.release == range(5, 5)


def test_the_last_instance_to_fail_has_nobody_to_stop() -> None:
    failed = play(1, None, FAILED, stop=True)[-1]
    assert not failed.cancel_started
    assert failed.outcome is FAILED


def test_where_the_run_goes_on_so_do_the_other_instances() -> None:
    decisions = play(3, 1, FAILED, SUCCEEDED, SUCCEEDED, stop=False)
    assert [list(d.release) for d in decisions] == [[0], [1], [2], []]
    assert decisions[-1].outcome is FAILED


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        ((SUCCEEDED, SKIPPED), SUCCEEDED),
        ((SKIPPED, SKIPPED), SKIPPED),
        ((SUCCEEDED, CANCELLED), CANCELLED),
        ((CANCELLED, ExecutionState.TIMED_OUT), FAILED),
    ],
)
def test_children_see_the_worst_of_the_instances(
    ends: tuple[ExecutionState, ...], outcome: ExecutionState
) -> None:
    assert play(len(ends), None, *ends, stop=False)[-1].outcome is outcome


def test_an_instance_ends_once_and_for_good() -> None:
    over = play(1, None, SUCCEEDED, stop=True)[-1]
    with pytest.raises(ValueError, match="does not end"):
        finish_instance(over.run, SUCCEEDED, stop_on_failure=True)
    with pytest.raises(ValueError, match="does not end"):
        finish_instance(begin_fan_out(1, None).run, ExecutionState.RUNNING, stop_on_failure=True)
