"""Whatever its instances do, a fanned-out task ends, within its limit, each instance once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.dag.fan_out import FanOut, begin_fan_out, finish_instance
from foliot.core.dag.graph import Graph
from foliot.core.dag.run import FailurePolicy, apply, begin, finish_task, move_task, prepare
from foliot.core.dag.tasks import Task
from foliot.core.model import HandlerTarget
from foliot.core.states import DagRunState, ExecutionEvent, ExecutionState

S = ExecutionState
ENDS = (S.SUCCEEDED, S.FAILED, S.TIMED_OUT, S.SKIPPED, S.CANCELLED)
OVER_A_LIST = Graph.build(
    [
        Task("each", target=HandlerTarget("work"), fan_out=FanOut("config.items")),
        Task("then", target=HandlerTarget("work"), dependencies=("each",)),
    ]
)


@given(
    total=st.integers(0, 12),
    limit=st.none() | st.integers(1, 5),
    stop=st.booleans(),
    ends=st.lists(st.sampled_from(ENDS), min_size=12, max_size=12),
)
@settings(deadline=None, max_examples=400)
def test_every_instance_starts_once_within_the_limit_or_never(
    total: int, limit: int | None, stop: bool, ends: list[ExecutionState]
) -> None:
    decision = begin_fan_out(total, limit)
    started, finished = list(decision.release), 0
    never: list[int] = []
    while decision.outcome is None:
        assert len(started) - finished <= (limit or total)
        decision = finish_instance(decision.run, ends[finished], stop_on_failure=stop)
        finished += 1
        started += decision.release
        never += decision.cancelled
    assert finished == len(started)
    assert sorted(started + never) == list(range(total))
    failed = {S.FAILED, S.TIMED_OUT} & set(ends[:finished])
    assert (decision.outcome is S.FAILED) == bool(failed)
    assert bool(never) <= (stop and bool(failed))


@given(
    ends=st.lists(st.sampled_from(ENDS), max_size=6)
    | st.lists(st.just(S.SKIPPED), min_size=1, max_size=6),
    policy=st.sampled_from(FailurePolicy),
)
@settings(deadline=None, max_examples=300)
def test_however_the_instances_end_the_run_takes_the_join_as_the_end_of_the_task(
    ends: list[ExecutionState], policy: FailurePolicy
) -> None:
    run = prepare(OVER_A_LIST, policy)
    apply(run, begin(OVER_A_LIST, run))
    apply(run, move_task(OVER_A_LIST, run, "each", ExecutionEvent.CLAIM))
    decision = begin_fan_out(len(ends), None)
    for end in ends:
        decision = finish_instance(decision.run, end, stop_on_failure=False)
    assert decision.outcome is not None
    apply(run, finish_task(OVER_A_LIST, run, "each", decision.outcome))
    assert run.tasks["each"].state is decision.outcome
    if decision.outcome is S.SKIPPED:
        assert run.tasks["then"].state is S.SKIPPED
        assert run.progress.state is DagRunState.SUCCEEDED
