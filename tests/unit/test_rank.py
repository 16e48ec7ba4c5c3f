from uuid import UUID

import pytest

from foliot.core.ids import TenantId
from foliot.core.rank import (
    Flow,
    RankFacts,
    assign_ranks,
    lane_time,
    virtual_time_after,
    weight,
)

ACME = TenantId(UUID(int=1))
BLUE = TenantId(UUID(int=2))


def facts(
    virtual_time: float = 0.0,
    waiting: dict[Flow, float] | None = None,
    tiers: dict[TenantId, float] | None = None,
) -> RankFacts:
    return RankFacts(virtual_time, waiting or {}, tiers or {})


def test_the_first_row_of_a_flow_goes_one_step_behind_virtual_time() -> None:
    assert assign_ranks(facts(7.0, tiers={ACME: 10}), [Flow(ACME, 5)]) == [7.1]


def test_a_row_goes_one_step_behind_the_last_waiting_row_of_its_flow() -> None:
    flow = Flow(ACME, 5)
    assert assign_ranks(facts(7.0, {flow: 20.0}), [flow, flow]) == [21.0, 22.0]


def test_a_waiting_row_that_virtual_time_has_passed_counts_no_more() -> None:
    flow = Flow(ACME, 5)
    assert assign_ranks(facts(30.0, {flow: 20.0}), [flow]) == [31.0]


def test_flows_do_not_push_each_other_back() -> None:
    acme, blue = Flow(ACME, 5), Flow(BLUE, 5)
    assert assign_ranks(facts(0.0, {acme: 1000.0}), [blue, acme, blue]) == [1.0, 1001.0, 2.0]


def test_an_idle_queue_keeps_its_virtual_time() -> None:
    assert virtual_time_after(12.5, []) == 12.5


@pytest.mark.parametrize(
    ("before", "claimed", "after"),
    [(5.0, [6.0, 9.0, 7.0], 9.0), (5.0, [3.0], 5.0), (0.0, [0.1], 0.1)],
)
def test_virtual_time_is_the_largest_rank_claimed(
    before: float, claimed: list[float], after: float
) -> None:
    assert virtual_time_after(before, claimed) == after


@pytest.mark.parametrize(
    ("virtual_time", "head", "expected"),
    [(50.0, None, 50.0), (50.0, 50.5, 50.0), (50.0, 12.0, 12.0)],
)
def test_a_lane_that_was_outrun_goes_by_its_own_head(
    virtual_time: float, head: float | None, expected: float
) -> None:
    assert lane_time(virtual_time, head) == expected


def test_a_tenant_with_one_active_priority_has_its_whole_tier() -> None:
    assert [weight(3, priority, ()) for priority in (1, 5, 10)] == [3, 3, 3]


def test_priority_one_weighs_thirty_two_times_priority_ten() -> None:
    assert weight(1, 1, {10}) / weight(1, 10, {1}) == pytest.approx(32)


def test_the_weights_of_all_active_priorities_add_up_to_the_tier() -> None:
    active = range(1, 11)
    assert sum(weight(10, priority, active) for priority in active) == pytest.approx(10)


def test_a_priority_that_waits_takes_its_part_of_the_share() -> None:
    urgent, bulk = Flow(ACME, 1), Flow(ACME, 10)
    rank = assign_ranks(facts(0.0, {bulk: 400.0}), [urgent])[0]
    assert rank == pytest.approx(33 / 32)


def test_the_priorities_of_one_batch_share_from_its_first_row() -> None:
    urgent, bulk = Flow(ACME, 1), Flow(ACME, 10)
    assert assign_ranks(facts(), [bulk, urgent]) == pytest.approx([33, 33 / 32])


def test_another_tenants_priorities_change_nothing() -> None:
    row = Flow(ACME, 5)
    crowd = {Flow(BLUE, priority): 9.0 for priority in range(1, 11)}
    assert assign_ranks(facts(0.0, crowd), [row]) == [1.0]


def test_a_tenant_without_a_tier_counts_as_free() -> None:
    assert assign_ranks(facts(tiers={BLUE: 10}), [Flow(ACME, 5)]) == [1.0]


def test_an_empty_batch_gets_no_ranks() -> None:
    assert assign_ranks(facts(), []) == []


def test_steps_keep_their_size_after_28_years_of_full_load() -> None:
    start = float(2**44 - 2**20)
    flow = Flow(ACME, 5)
    ranks = assign_ranks(facts(start, tiers={ACME: 10}), [flow] * 10_000)
    assert ranks[-1] - start == pytest.approx(1000, rel=0.01)
