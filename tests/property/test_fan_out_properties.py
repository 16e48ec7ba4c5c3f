"""Whatever its instances do, a fanned-out task ends, within its limit, each instance once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.dag.fan_out import begin_fan_out, finish_instance
from foliot.core.states import ExecutionState

S = ExecutionState
ENDS = (S.SUCCEEDED, S.FAILED, S.TIMED_OUT, S.SKIPPED, S.CANCELLED)


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
