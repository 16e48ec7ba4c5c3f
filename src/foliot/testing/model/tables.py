"""What the tables say, and whether the model says the same."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from foliot.core.ids import ExecutionId, JobId, WorkerId
from foliot.store.database import Database
from foliot.testing.database import sql
from foliot.testing.model.state import Disagreement, StoreModel, is_close, same

Columns = Mapping[str, Any]

_EMPTY: Final = sql("""
do $$
declare
  name text;
begin
  for name in select c.relname from pg_catalog.pg_class c
               where c.relnamespace = 'foliot'::regnamespace and c.relkind in ('r', 'p')
                 and not c.relispartition and c.relname !~ '^(tenants|lanes|shard_leases|schema_)'
  loop
    execute format('delete from foliot.%I', name);
  end loop;
end $$
""")
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "executions": (
        *("id", "claimed_at", "rank", "job_id", "tenant_id", "job_version", "trigger", "queue"),
        *("lane_id", "priority", "scheduled_time", "available_at", "start_by", "limit_keys"),
        *("notify", "unique_key", "status", "hold", "fence", "attempt_number", "worker_id"),
        *("cancel_requested_at", "run_alone", "crash_count"),
    ),
    "attempts": (
        *("id", "fence", "attempt_number", "status", "final", "worker_id", "job_id", "trigger"),
        *("scheduled_time", "available_at", "claimed_at"),
    ),
    "dead_letters": ("id", "reason", "total_attempts"),
    "skips": ("job_id", "reason", "count", "from_instant", "to_instant"),
    "jobs": (
        *("id", "status", "version", "schedule_version", "next_instant", "next_run_at"),
        *("last_instant", "fired_count", "queue", "lane_id", "priority", "limit_keys"),
    ),
    "job_versions": (
        *("job_id", "version", "schedule_version", "status", "valid_from"),
        *("definition ->> 'schedule'", "definition ->> 'counted_from'"),
    ),
    "deliveries": ("id", "fence", "status"),
    "limits": ("key", "max_running"),
    "queue_clocks": ("lane_id", "virtual_time"),
    "workers": ("id", "status", "last_heartbeat_at", "started"),
}
# In one round trip: a list of rows of each table.
_ROWS: Final = "(select array_agg(x) from (select {} from foliot.{}) x)"
_LISTS: Final = [_ROWS.format(", ".join(names), table) for table, names in _COLUMNS.items()]
_READ: Final = sql(f"select {', '.join(_LISTS)}")


@dataclass(frozen=True, slots=True)
class Tables:
    """All rows there are, as the server has them."""

    live: Mapping[ExecutionId, Columns]
    history: Sequence[Columns]
    dead: Mapping[ExecutionId, tuple[str, int]]
    skips: Sequence[Columns]
    jobs: Mapping[JobId, Columns]
    versions: Sequence[Columns]
    deliveries: set[tuple[ExecutionId, int, str]]
    limits: Mapping[str, int]
    clocks: Mapping[int, float]
    workers: Mapping[WorkerId, tuple[object, ...]]


async def empty_tables(database: Database) -> None:
    await database.execute(_EMPTY)


async def read_tables(database: Database) -> Tables:
    row = await database.fetch_row(_READ)
    found = {
        table: [dict(zip(names, values, strict=True)) for values in rows or ()]
        for (table, names), rows in zip(_COLUMNS.items(), row or (), strict=True)
    }
    clocks: dict[int, float] = {}
    for each in found["queue_clocks"]:
        lane_id, time = each["lane_id"], each["virtual_time"]
        clocks[lane_id] = max(time, clocks.get(lane_id, time))
    return Tables(
        live={each["id"]: _with_keys(each) for each in found["executions"]},
        history=found["attempts"],
        dead={
            each["id"]: (each["reason"], each["total_attempts"]) for each in found["dead_letters"]
        },
        skips=found["skips"],
        jobs={each["id"]: _with_keys(each) for each in found["jobs"]},
        versions=sorted(found["job_versions"], key=lambda each: (each["job_id"], each["version"])),
        deliveries={(each["id"], each["fence"], each["status"]) for each in found["deliveries"]},
        limits={each["key"]: each["max_running"] for each in found["limits"]},
        clocks=clocks,
        workers={
            each["id"]: (each["status"], each["last_heartbeat_at"], frozenset(each["started"]))
            for each in found["workers"]
        },
    )


def _with_keys(row: dict[str, Any]) -> Columns:
    keys = row["limit_keys"]
    asked = row.get("cancel_requested_at") is not None
    return row | {"limit_keys": keys and tuple(keys), "cancel_requested": asked}


def compare(model: StoreModel, tables: Tables) -> None:
    """Every row of every table is what the model says, and there are no others."""
    same_rows("execution", tables.live, {key: row.columns for key, row in model.live.items()})
    _compare_ranks(model, tables)
    found = Counter(
        (
            row["id"],
            row["fence"],
            row["attempt_number"],
            row["status"],
            row["final"],
            row["worker_id"],
        )
        for row in tables.history
    )
    same(found - Counter(model.history), Counter(), "rows of history too many")
    same(Counter(model.history) - found, Counter(), "rows of history that are missing")
    same(tables.dead, model.dead, "dead letters")
    skipped: Counter[tuple[JobId, str]] = Counter()
    for skip in tables.skips:
        skipped[skip["job_id"], skip["reason"]] += skip["count"]
    same(skipped, model.skipped, "skipped instants")
    same_rows("job", tables.jobs, {key: record.columns for key, record in model.jobs.items()})
    same(tables.deliveries, model.deliveries, "deliveries")
    same(tables.limits, model.limits, "limits")
    workers = {
        key: (worker.status.value, worker.last_beat, worker.started)
        for key, worker in model.workers.items()
    }
    same(tables.workers, workers, "workers")
    _compare_clocks(model, tables)


def adopt(model: StoreModel, tables: Tables) -> None:
    """The ranks and times to the last bit: what follows from them is computed from the same."""
    for execution_id, row in model.live.items():
        row.rank = tables.live[execution_id]["rank"]
    model.clocks = {lane_id: (time, time) for lane_id, time in tables.clocks.items()}


def read_clocks(model: StoreModel, tables: Tables) -> None:
    """How far a lane has come where the model knows only the bounds."""
    for lane_id, (low, high) in model.clocks.items():
        time = tables.clocks.get(lane_id, high)
        if low < high and low <= time <= high:
            model.clocks[lane_id] = (time, time)


def same_rows(
    what: str, found: Mapping[Any, Columns], expected: Mapping[Any, Mapping[str, object]]
) -> None:
    same(found.keys() - expected.keys(), set(), f"{what}s too many")
    same(expected.keys() - found.keys(), set(), f"{what}s that are missing")
    for key, columns in expected.items():
        for name, value in columns.items():
            same(found[key][name], value, f"{name} of {what} {key}")


def _compare_ranks(model: StoreModel, tables: Tables) -> None:
    other = [
        f"{row.execution_id} of tenant {row.tenant_id}, priority {row.priority}, in lane"
        f" {row.lane_id}: {tables.live[execution_id]['rank']}, but by the model {row.rank}"
        for execution_id, row in model.live.items()
        if not is_close(tables.live[execution_id]["rank"], row.rank)
    ]
    if other:
        raise Disagreement("ranks: " + "; ".join(other))


def _compare_clocks(model: StoreModel, tables: Tables) -> None:
    same(tables.clocks.keys(), model.clocks.keys(), "lanes that have a clock")
    for lane_id, (low, high) in model.clocks.items():
        time = tables.clocks[lane_id]
        if not (low <= time <= high):
            raise Disagreement(f"virtual time of lane {lane_id}: {time}, not in {low} to {high}")
