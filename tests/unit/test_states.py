from collections.abc import Mapping
from enum import StrEnum

import pytest

from foliot.core.errors import IllegalTransition
from foliot.core.states import (
    DAG_RUN,
    EXECUTION,
    JOB,
    TERMINAL,
    WORKER,
    DagRunEvent,
    DagRunState,
    ExecutionEvent,
    ExecutionState,
    JobEvent,
    JobState,
    WorkerEvent,
    WorkerState,
    advance,
)

Table = Mapping[tuple[StrEnum, StrEnum], StrEnum]
MACHINES = [
    pytest.param(
        EXECUTION,
        ExecutionState,
        ExecutionEvent,
        {ExecutionState.PENDING, ExecutionState.WAITING, ExecutionState.QUEUED},
        id="execution",
    ),
    pytest.param(JOB, JobState, JobEvent, {JobState.ACTIVE}, id="job"),
    pytest.param(WORKER, WorkerState, WorkerEvent, {WorkerState.ACTIVE}, id="worker"),
    pytest.param(DAG_RUN, DagRunState, DagRunEvent, {DagRunState.PENDING}, id="dag run"),
]


def test_terminal_states_are_the_six_ends_of_an_execution() -> None:
    assert {
        ExecutionState.SUCCEEDED,
        ExecutionState.FAILED,
        ExecutionState.TIMED_OUT,
        ExecutionState.CANCELLED,
        ExecutionState.SKIPPED,
        ExecutionState.UPSTREAM_FAILED,
    } == TERMINAL


@pytest.mark.parametrize(("table", "states", "events", "initial"), MACHINES)
def test_every_state_can_be_reached(
    table: Table, states: type[StrEnum], events: type[StrEnum], initial: set[StrEnum]
) -> None:
    reached, frontier = set(initial), set(initial)
    while frontier:
        frontier = {to for (state, _), to in table.items() if state in frontier} - reached
        reached |= frontier
    assert reached == set(states)
    assert {event for _, event in table} == set(events)


@pytest.mark.parametrize(("table", "states", "events", "initial"), MACHINES)
def test_from_every_state_an_end_can_be_reached(
    table: Table, states: type[StrEnum], events: type[StrEnum], initial: set[StrEnum]
) -> None:
    assert initial
    assert events
    ends = set(states) - {state for state, _ in table}
    assert ends
    while more := {state for (state, _), to in table.items() if to in ends} - ends:
        ends |= more
    assert ends == set(states)


@pytest.mark.parametrize(("table", "states", "events", "initial"), MACHINES)
def test_an_event_either_advances_or_is_refused_with_what_is_allowed(
    table: Table, states: type[StrEnum], events: type[StrEnum], initial: set[StrEnum]
) -> None:
    assert initial
    for state in states:
        allowed = tuple(sorted(event for each, event in table if each == state))
        for event in events:
            if event in allowed:
                assert advance(table, state, event) == table[state, event]
                continue
            with pytest.raises(IllegalTransition) as caught:
                advance(table, state, event)
            assert caught.value.allowed == allowed
            assert (caught.value.state, caught.value.event) == (state, event)


def test_a_refusal_says_what_would_be_taken() -> None:
    with pytest.raises(IllegalTransition) as caught:
        advance(WORKER, WorkerState.DRAINING, WorkerEvent.DRAIN)
    assert str(caught.value) == "DRAINING does not take DRAIN (it takes DIE)"


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_what_has_ended_takes_nothing(state: ExecutionState) -> None:
    with pytest.raises(IllegalTransition) as caught:
        advance(EXECUTION, state, ExecutionEvent.SUCCEED)
    assert str(caught.value) == f"{state} does not take SUCCEED (it takes nothing: it is final)"


@pytest.mark.parametrize(
    ("state", "event", "to"),
    [
        (ExecutionState.RUNNING, ExecutionEvent.LOSE, ExecutionState.QUEUED),
        (ExecutionState.RUNNING, ExecutionEvent.SNOOZE, ExecutionState.PENDING),
        (ExecutionState.RUNNING, ExecutionEvent.HAND_BACK, ExecutionState.QUEUED),
        (ExecutionState.RUNNING, ExecutionEvent.RETRY, ExecutionState.RETRYING),
        (ExecutionState.QUEUED, ExecutionEvent.EXPIRE, ExecutionState.FAILED),
    ],
)
def test_the_ways_back_and_out(
    state: ExecutionState, event: ExecutionEvent, to: ExecutionState
) -> None:
    assert advance(EXECUTION, state, event) is to


def test_only_a_claim_makes_it_run_and_a_hand_over_lets_it() -> None:
    ways = {move for move, to in EXECUTION.items() if to is ExecutionState.RUNNING}
    assert ways == {
        (ExecutionState.QUEUED, ExecutionEvent.CLAIM),
        (ExecutionState.RUNNING, ExecutionEvent.HAND_OVER),
    }
