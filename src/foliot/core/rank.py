"""Whose turn is it? One number per waiting execution; the smallest goes first.

A flow is (tenant, priority). A new row goes one step behind its flow's last waiting row, or behind
the virtual time if none waits; the step is 1 / weight, so a flow of twice the weight fits in twice
the rows. Virtual time is the largest rank claimed so far. All of it is read from rows: a restart
forgets nothing, and nodes share one account.

Why one step behind virtual time, and not at it: a flow that sends its next row whenever the last
one was claimed never has a row waiting. At virtual time itself such rows would always come first,
and virtual time would stand still while everyone else waits.

Precision, with the default tiers: the smallest step is 0.1 (weight 10). A float64 holds it to 1 %
up to 2^44 and loses it at 2^50. Virtual time grows by 1 per claim on average if a single free
tenant sends, by less otherwise, so 2^44 is 28 years of 20,000 claims a second. An idle queue keeps
its virtual time and is never set back to 0: a rank computed just before would wait all those years.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from foliot.core.ids import TenantId
from foliot.core.priorities import SHARES

_WEIGHT_OF_UNKNOWN_TENANTS: Final = 1.0


class Flow(NamedTuple):
    """Rows that wait for each other and share one weight."""

    tenant_id: TenantId
    priority: int


@dataclass(frozen=True, slots=True)
class RankFacts:
    """What the rows say at the moment a batch is ranked.

    `last_waiting_ranks` names every flow of the batch's tenants that has a waiting row, so it also
    says which priorities are active. A tenant without a tier weight counts as free.
    """

    virtual_time: float
    last_waiting_ranks: Mapping[Flow, float]
    tier_weights: Mapping[TenantId, float]


def assign_ranks(facts: RankFacts, rows: Sequence[Flow]) -> list[float]:
    """A rank for each row, in the order given; the rows of one flow keep that order.

    A tenant's active priorities are those that wait plus those of the whole batch, so the result
    is the same as ranking the rows one by one with that set. Ranked truly one by one, the first
    row of a batch with ten priorities would count as if it were alone, and its tenant would get
    more than its share until those rows have run.

    Rows that wait keep their rank when another priority joins. So a more urgent row need not queue
    behind them, but it shares with them by turns that were dealt while they were alone: 517 of
    priority 1 to 533 that waited of priority 10, and never fewer than one to two. The 32 : 1 holds
    for rows that arrive while both wait. Ten floods, one per batch and the least urgent first, hold
    4.6 shares while they all last (1 + p9/(p9 + p10) + …). Ranking only the next rows of a flow
    would cure both; it is not done.
    """
    steps = _steps(facts, rows)
    virtual_time = facts.virtual_time
    last: dict[Flow, float] = {
        flow: max(virtual_time, facts.last_waiting_ranks.get(flow, virtual_time)) for flow in steps
    }
    ranks = []
    for flow in rows:
        rank = last[flow] + steps[flow]
        last[flow] = rank
        ranks.append(rank)
    return ranks


def weight(tier_weight: float, priority: int, active: Iterable[int]) -> float:
    """The share of `priority` while its tenant also has rows of the `active` priorities."""
    return tier_weight * SHARES[priority] / sum(SHARES[each] for each in {priority, *active})


def virtual_time_after(virtual_time: float, claimed: Iterable[float]) -> float:
    """A queue's virtual time once rows with these ranks are claimed. It never goes back."""
    return max(virtual_time, max(claimed, default=virtual_time))


def lane_time(virtual_time: float, lane_head: float | None) -> float:
    """The virtual time that counts for new rows of a lane whose smallest waiting rank is known.

    Lanes of one queue are served by different workers. A fast lane drives the queue's virtual time
    past the rows that wait in a slow one; there a newcomer goes by the slow lane's own head, or it
    would stand behind the whole backlog of a tenant that floods it.
    """
    return virtual_time if lane_head is None else min(virtual_time, lane_head)


def _steps(facts: RankFacts, rows: Sequence[Flow]) -> dict[Flow, float]:
    """The distance between two rows of each flow in the batch."""
    flows = dict.fromkeys(rows)
    active: defaultdict[TenantId, set[int]] = defaultdict(set)
    for flow in (*flows, *facts.last_waiting_ranks):
        active[flow.tenant_id].add(flow.priority)
    return {
        flow: 1 / weight(_tier_weight(facts, flow), flow.priority, active[flow.tenant_id])
        for flow in flows
    }


def _tier_weight(facts: RankFacts, flow: Flow) -> float:
    return facts.tier_weights.get(flow.tenant_id, _WEIGHT_OF_UNKNOWN_TENANTS)
