"""How rows name what they are counted under."""

from uuid import UUID

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.ids import JobId, TenantId
from foliot.core.limits import (
    Limit,
    job_limit,
    key_limit,
    key_text,
    key_texts,
    queue_limit,
    tenant_limit,
    tenant_rate,
)
from foliot.core.model import RateLimit

TENANT, JOB = TenantId(UUID(int=1)), JobId(UUID(int=9))
RATE = tenant_rate(TENANT, RateLimit(1, 60))


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (queue_limit("gpu", 1), "queue:gpu"),
        (tenant_limit(TENANT, 1), f"tenant:{TENANT}"),
        (job_limit(TENANT, JOB, "name", 1), f"job:{JOB}"),
        (key_limit(TENANT, "a:b", 1), f"key:{TENANT}:a:b"),
    ],
)
def test_a_key_says_what_it_is_about(limit: Limit, text: str) -> None:
    assert key_text(limit.key) == text


def test_keys_come_widest_first_and_once() -> None:
    limits = [
        key_limit(TENANT, "k", 1),
        job_limit(TENANT, JOB, "name", 1),
        queue_limit("q", 1),
        tenant_limit(TENANT, 1),
        queue_limit("q", 2),
    ]
    kinds = [text.partition(":")[0] for text in key_texts(limits)]
    assert kinds == ["queue", "tenant", "job", "key"]


def test_a_rate_is_not_counted_on_rows() -> None:
    assert RATE is not None
    assert key_texts([RATE, queue_limit("q", 1)]) == ("queue:q",)
    with pytest.raises(InvalidInput, match="holds no slots"):
        key_text(RATE.key)
