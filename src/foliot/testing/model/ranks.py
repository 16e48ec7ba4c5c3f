"""Whose turn it is, by the rule of the core, from the rows of the model."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from foliot.core.rank import Flow, RankFacts, assign_ranks, lane_time
from foliot.core.states import ExecutionState
from foliot.testing.model.state import Row, StoreModel


def let_go(model: StoreModel, rows: Iterable[Row]) -> None:
    """Their time has come, in this order: each may be claimed, or waits for a slot."""
    ready = []
    for row in rows:
        if row.limit_keys is None:
            ready.append(row)
        else:
            row.status, row.hold = ExecutionState.WAITING, "LIMIT"
    queue_up(model, ready)


def queue_up(model: StoreModel, rows: Iterable[Row]) -> None:
    """They may be claimed from now on, and get their ranks in this order."""
    by_queue: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_queue[row.queue].append(row)
    for queue, batch in by_queue.items():
        for row, rank in zip(batch, _ranks(model, queue, batch), strict=True):
            row.status, row.hold, row.rank = ExecutionState.QUEUED, None, rank


def _ranks(model: StoreModel, queue: str, batch: Sequence[Row]) -> list[float]:
    """The k-th row of a flow goes k steps behind the flow's last, whatever its lane; where the flow
    begins, if nothing waits, is for each lane to say."""
    virtual_time = model.virtual_time(queue)
    flows = [_flow(row) for row in batch]
    last: dict[Flow, float] = {}
    for row in model.live.values():
        if row.waits and row.rank is not None and row.queue == queue:
            last[_flow(row)] = max(row.rank, last.get(_flow(row), row.rank))
    # What a fast lane's time has overtaken no longer shares.
    active = {flow: rank for flow, rank in last.items() if rank > virtual_time or flow in flows}
    by_lane = {
        lane_id: assign_ranks(
            RankFacts(lane_time(virtual_time, _head(model, lane_id)), active, model.weights), flows
        )
        for lane_id in {row.lane_id for row in batch}
    }
    return [by_lane[row.lane_id][place] for place, row in enumerate(batch)]


def _head(model: StoreModel, lane_id: int) -> float | None:
    low, _ = model.clocks.get(lane_id, (float("-inf"), 0.0))
    waiting = (row.rank for row in model.live.values() if row.waits and row.lane_id == lane_id)
    return min((rank for rank in waiting if rank is not None and rank > low), default=None)


def _flow(row: Row) -> Flow:
    return Flow(row.tenant_id, row.priority)
