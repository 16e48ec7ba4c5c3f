"""How rows name what they are counted under."""

from uuid import UUID

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.ids import JobId, TenantId
from foliot.core.limits import (
    Limit,
    job_limit,
    job_rate,
    key_limit,
    key_text,
    key_texts,
    limits_of_tenant,
    queue_limit,
    tenant_limit,
    tenant_rate,
)
from foliot.core.model import Json, RateLimit

TENANT, JOB = TenantId(UUID(int=1)), JobId(UUID(int=9))
RATE = RateLimit(1, 60)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (tenant_limit(TENANT, 1), f"tenant:{TENANT}"),
        (tenant_rate(TENANT, RATE), f"tenant:{TENANT}"),
        (job_limit(TENANT, JOB, "name", 1), f"job:{JOB}"),
        (job_rate(TENANT, JOB, "name", RATE), f"job:{JOB}"),
        (key_limit(TENANT, "a:b", 1), f"key:{TENANT}:a:b"),
    ],
)
def test_a_key_says_what_it_is_about(limit: Limit | None, text: str) -> None:
    assert limit is not None
    assert key_text(limit.key) == text


def test_keys_come_widest_first_and_once() -> None:
    limits = [
        key_limit(TENANT, "k", 1),
        job_rate(TENANT, JOB, "name", RATE),
        job_limit(TENANT, JOB, "name", 1),
        tenant_rate(TENANT, RATE),
        tenant_limit(TENANT, 1),
        tenant_limit(TENANT, 2),
    ]
    kinds = [text.partition(":")[0] for text in key_texts(limit for limit in limits if limit)]
    assert kinds == ["tenant", "job", "key"]


def test_a_queue_is_no_key_of_its_rows() -> None:
    with pytest.raises(InvalidInput, match="in one queue"):
        key_text(queue_limit("q", 1).key)


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        ({}, []),
        ({"max_concurrent": None, "active_jobs": 5}, []),
        ({"max_concurrent": 7}, [(7, None)]),
        ({"executions_per_minute": 100}, [(200, 120.0)]),
        ({"max_concurrent": 7, "executions_per_minute": 1}, [(7, None), (2, 120.0)]),
    ],
)
def test_quotas_say_what_a_tenant_is_limited_to(
    quotas: dict[str, Json], expected: list[tuple[int, float | None]]
) -> None:
    """A hundred a minute with a burst of two minutes' worth is two hundred in any two minutes."""
    limits = limits_of_tenant(TENANT, quotas)
    assert [(limit.at_most, limit.period_seconds) for limit in limits] == expected
    assert {limit.key.tenant_id for limit in limits} <= {TENANT}


@pytest.mark.parametrize("name", ["max_concurrent", "executions_per_minute"])
@pytest.mark.parametrize("value", [0, -1, True, "7", 1.5, 10**7, [1]])
def test_a_quota_that_is_no_number_of_executions_is_refused(name: str, value: Json) -> None:
    with pytest.raises(InvalidInput, match=f"quotas.{name}"):
        limits_of_tenant(TENANT, {name: value})
