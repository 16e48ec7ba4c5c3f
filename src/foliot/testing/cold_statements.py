"""Statements that need no guard against slowness in a crowd, by why they need none."""

from collections.abc import Mapping
from typing import Final

COLD: Final[Mapping[str, set[str]]] = {
    "somebody wants a count of all that a tenant has, or the whole of it in another order": {
        "executions/count",
        "jobs/count_versions",
        "logs/count",
        "workers/count",
        "jobs/count",
        "jobs/list_by_name",
        "jobs/list_soonest",
        "secrets/count",
        "dead_letters/count",
        "dead_letters/count_groups",
        "dead_letters/list_groups",
    },
    "it counts what awaits a decision, up to a number, four times a minute": {
        "dead_letters/read_depth"
    },
    "it counts what the workers of a page hold, for people": {"workers/list_page"},
    "it counts what runs and waits in a queue, for its operator": {
        "queues/count",
        "queues/list_page",
        "queues/put_limit",
    },
    "it looks at all who hold a slot, and the limits say how many they can be": {
        "limits/withdraw",
    },
    "its table has a row for each limit that is new": {"limits/end_change", "limits/list_changes"},
    "it counts the workers that live, for each of them every ten seconds": {
        "workers/count_sharing"
    },
    "it reads no table": {
        "hints/send",
        "jobs/read_time",
        "schema/lock_migrations",
        "schema/read_clock",
        "tenants/enter_tenant",
        "workers/read_hearing",
    },
    "there are 64 shards, and a row for each scheduler of a day": {
        "shards/forget_silent",
        "shards/give",
        "shards/read",
        "shards/renew",
        "shards/take",
    },
    "it reads the server's catalog and settings, when a node starts or a person asks": {
        "ledger/read_horizon",
        "schema/has_migrations",
        "schema/read_drops",
        "schema/read_safety",
    },
    "its table has a row for each migration, or for each function": {
        "schema/forget_functions",
        "schema/read_applied",
        "schema/read_functions",
        "schema/read_readiness",
        "schema/record_applied",
        "schema/record_function",
    },
    "once a day, on a partition that is empty as a rule": {"partitions/create_day"},
}
