"""The words that a column takes are the words of the rules, no more and no fewer."""

import re
from enum import StrEnum

import pytest

from foliot.core.dag.run import FailurePolicy
from foliot.core.model import OverlapPolicy, SkipReason
from foliot.core.retry import DeadLetterReason
from foliot.core.states import EXECUTION, ExecutionState, JobState, WorkerState
from foliot.store.database import Database
from foliot.testing.database import sql

CHECK = sql("""
select pg_get_constraintdef(c.oid)
  from pg_catalog.pg_constraint c
  join pg_catalog.pg_attribute a on a.attrelid = c.conrelid and array[a.attnum] = c.conkey
 where c.contype = 'c' and c.conrelid = $1::text::regclass and a.attname = $2::text
""")
# What is over has left the live table.
LIVE = {before for before, _ in EXECUTION}


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("dead_letters", "reason", DeadLetterReason),
        ("skips", "reason", SkipReason),
        ("jobs", "status", JobState),
        ("jobs", "overlap_policy", OverlapPolicy),
        ("workers", "status", WorkerState),
        ("dags", "status", JobState),
        ("dags", "failure_policy", FailurePolicy),
    ],
)
async def test_a_column_takes_every_word_and_no_other(
    database: Database, table: str, column: str, words: type[StrEnum]
) -> None:
    assert await words_of(database, table, column) == set(words)


async def test_an_execution_that_lives_is_in_a_state_that_something_follows(
    database: Database,
) -> None:
    assert await words_of(database, "executions", "status") == LIVE
    assert ExecutionState.SUCCEEDED not in LIVE


async def words_of(database: Database, table: str, column: str) -> set[str]:
    written = await database.fetch_value(CHECK, f"foliot.{table}", column)
    return set(re.findall(r"'(\w+)'", written))
