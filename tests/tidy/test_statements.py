"""Statements and functions keep their promises: a header that is true, the callers it names, and
time as an argument."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliot.core import states
from foliot.store.function_files import StoredFunction, packaged_functions
from foliot.store.migration_files import Migration, packaged_migrations
from foliot.store.statements import Statement, every_statement, read_header

PACKAGE = Path(__file__).parents[2] / "src" / "foliot"
STATEMENTS = tuple(every_statement())
FUNCTIONS = packaged_functions()
MIGRATIONS = packaged_migrations()

TRANSITION = re.compile(r"([a-z_]+) ([A-Z_]+): ([A-Z_]+) -> ([A-Z_]+)")
TRANSITIONS = {
    (table, str(event), str(before), str(after))
    for table, moves in (
        ("execution", states.EXECUTION.items()),
        ("job", states.JOB.items()),
        ("worker", states.WORKER.items()),
        ("dag_run", states.DAG_RUN.items()),
    )
    for (before, event), after in moves
}
STATE_NAMES = {state for move in TRANSITIONS for state in move[2:]}

# Time is told, or asked of the server: coalesce($1::timestamptz, statement_timestamp()). A function
# has a named argument instead of $1.
TIME = re.compile(
    r"\b(?:now|(?:statement|clock|transaction)_timestamp|timeofday)\s*\(\s*\)"
    r"|\b(?:current_timestamp|current_date|current_time|localtimestamp|localtime)\b"
    r"|'(?:now|today|tomorrow|yesterday)'"
)
TOLD = re.compile(
    r"coalesce\(\s*(?:\$\d+::timestamptz|[a-z_]+),\s*(?P<clock>\w+)\(\)\s*\)", re.IGNORECASE
)
# Reads the clock to learn how far a node's own is away; compares it with no row.
CLOCK_READERS = {"schema/read_readiness"}
# A function that has waited for a lock asks for the time after it.
FUNCTION_TIME = re.compile(r"coalesce\(p_now, (?:statement|clock)_timestamp\(\)\)")
# What keeps a subquery from being pulled up into the statement around it.
KEPT_APART = re.compile(
    r"\boffset 0|\blimit\b|\bfor (?:no key )?update\b|\border by\b|\bgroup by\b|\bunion\b"
    r"|\bdistinct on\b|\b(?:count|sum|min|max|array_agg)\("
)
TRANSACTION_CONTROL = re.compile(
    r"^\s*(?:begin|commit|rollback|abort)\s*;", re.IGNORECASE | re.MULTILINE
)


def name(entry: Statement | StoredFunction) -> str:
    return entry.name


def unknown_transitions(text: str) -> list[str]:
    """Parts that are not written as `execution CLAIM: QUEUED -> RUNNING`, or not in its table."""
    parts = [part.strip() for part in text.split(",")]
    matches = [TRANSITION.fullmatch(part) for part in parts]
    return [
        part
        for part, match in zip(parts, matches, strict=True)
        if match is None or match.groups() not in TRANSITIONS
    ]


def code(sql: str) -> str:
    """Without comments: prose may speak of now()."""
    return re.sub(r"--[^\n]*", "", sql)


def times_not_told(sql: str, clock: str) -> list[str]:
    """Every reading of a clock that no caller can overrule."""

    def keep_if_other(match: re.Match[str]) -> str:
        return "" if match["clock"].lower() == clock else match[0]

    return TIME.findall(TOLD.sub(keep_if_other, code(sql).lower()))


def find_function_callers(called: str) -> list[str]:
    """As a header names them: the statements and functions in whose text the function is called."""
    call = re.compile(rf"\bfoliot\.{called}\(")
    statements = [f"sql {entry.name}" for entry in STATEMENTS if call.search(code(entry.sql))]
    functions = [
        f"function {entry.name}"
        for entry in FUNCTIONS
        if entry.name != called and call.search(code(entry.script))
    ]
    return statements + functions


def find_callers() -> dict[str, list[str]]:
    """By statement, the modules that ask for it by name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name("statement"), args=[ast.Constant(str(asked))]):
                    found[asked].append(module)
                case _:
                    pass
    return found


CALLERS = find_callers()


def test_a_caller_asks_for_a_statement_that_is_there() -> None:
    assert set(CALLERS) == set(map(name, STATEMENTS))


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
def test_a_statement_has_the_one_caller_it_names(statement: Statement) -> None:
    assert CALLERS[statement.name] == [statement.header["caller"]]


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
def test_a_statement_is_one_statement(statement: Statement) -> None:
    body = re.sub(r"(?s)\$(\w*)\$.*?\$\1\$|'[^']*'", "", code(statement.sql))
    assert body.strip().rstrip(";").count(";") == 0


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
def test_a_named_transition_is_in_the_state_machine(statement: Statement) -> None:
    transition = statement.header["transition"]
    if transition != "none":
        assert not unknown_transitions(transition)


@pytest.mark.parametrize(
    ("transition", "known"),
    [
        ("execution CLAIM: QUEUED -> RUNNING", True),
        ("execution CLAIM: QUEUED -> RUNNING, job PAUSE: ACTIVE -> PAUSED", True),
        ("execution CLAIM: QUEUED -> SUCCEEDED", False),
        ("job CLAIM: QUEUED -> RUNNING", False),
        ("execution QUEUED -> RUNNING", False),
    ],
)
def test_the_rule_about_transitions_knows_the_tables(transition: str, known: bool) -> None:
    assert (not unknown_transitions(transition)) is known


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
def test_a_state_that_is_written_is_announced(statement: Statement) -> None:
    """State names are literals, so that a partial index can be proven usable."""
    written = set(re.findall(r"(?:status|state)\s*=\s*'([A-Z_]+)'", code(statement.sql)))
    assert written <= STATE_NAMES
    assert not re.search(r"(?:status|state)\s*=\s*\$\d", code(statement.sql))


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
def test_time_can_be_told(statement: Statement) -> None:
    clock = "clock_timestamp" if statement.name in CLOCK_READERS else "statement_timestamp"
    assert not times_not_told(statement.sql, clock)


@pytest.mark.parametrize(
    ("sql", "allowed"),
    [
        ("select coalesce($1::timestamptz, statement_timestamp())", True),
        ("select coalesce(told, statement_timestamp())", True),
        ("select 1 -- not now()", True),
        ("select now()", False),
        ("select now ()", False),
        ("select coalesce($1::timestamptz, now())", False),
        ("select coalesce($1::timestamptz, clock_timestamp())", False),
        ("select CURRENT_TIMESTAMP", False),
        ("select 'now'::timestamptz", False),
        ("select statement_timestamp()", False),
        ("select coalesce($1::timestamptz, statement_timestamp()) < clock_timestamp()", False),
    ],
)
def test_the_rule_about_time_finds_every_clock(sql: str, allowed: bool) -> None:
    assert (not times_not_told(sql, "statement_timestamp")) is allowed


def test_a_header_without_all_its_lines_is_refused() -> None:
    whole = "-- purpose: a\n--   and b\n-- caller: c\n-- transition: none\n-- fence: none\n"
    with pytest.raises(ValueError, match=r"^sql/jobs/fire\.sql: the header lacks index"):
        read_header("sql/jobs/fire.sql", whole + "select 1")
    assert (
        read_header("sql/jobs/fire.sql", whole + "-- index: none\nselect 1")["purpose"] == "a and b"
    )


@pytest.mark.parametrize("path", sorted((PACKAGE / "store" / "sql").rglob("*")), ids=str)
def test_every_file_below_sql_is_a_statement_of_an_aggregate(path: Path) -> None:
    parts = path.relative_to(PACKAGE / "store" / "sql").with_suffix("").parts
    assert len(parts) == 1 if path.is_dir() else "/".join(parts) in set(map(name, STATEMENTS))


@pytest.mark.parametrize("migration", MIGRATIONS, ids=lambda migration: migration.file)
def test_a_migration_does_not_end_its_own_transaction(migration: Migration) -> None:
    assert not TRANSACTION_CONTROL.search(code(migration.script))


@pytest.mark.parametrize("function", FUNCTIONS, ids=name)
def test_a_function_has_the_callers_it_names(function: StoredFunction) -> None:
    """One statement, or functions."""
    callers = find_function_callers(function.name)
    assert sorted(part.strip() for part in function.header["caller"].split(",")) == sorted(callers)
    assert len([caller for caller in callers if caller.startswith("sql ")]) <= 1
    assert callers


@pytest.mark.parametrize("function", FUNCTIONS, ids=name)
def test_a_transition_that_a_function_names_is_in_the_state_machine(
    function: StoredFunction,
) -> None:
    transition = function.header["transition"]
    if transition != "none":
        assert not unknown_transitions(transition)


@pytest.mark.parametrize("function", FUNCTIONS, ids=name)
def test_a_state_that_a_function_writes_is_a_literal(function: StoredFunction) -> None:
    written = set(re.findall(r"(?:status|state)\s*=\s*'([A-Z_]+)'", code(function.script)))
    assert written <= STATE_NAMES


@pytest.mark.parametrize("function", FUNCTIONS, ids=name)
def test_time_can_be_told_to_a_function(function: StoredFunction) -> None:
    assert not TIME.findall(FUNCTION_TIME.sub("", code(function.script).lower()))


def lateral_lookups(sql: str) -> Iterator[str]:
    """What stands between the brackets of each `lateral (…)`."""
    for match in re.finditer(r"lateral\s*\(", sql):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            end += 1
        yield sql[match.end() : end - 1]


@pytest.mark.parametrize("entry", [*STATEMENTS, *FUNCTIONS], ids=name)
def test_a_lateral_lookup_is_not_turned_round(entry: Statement | StoredFunction) -> None:
    """Pulled up into its statement, one may become a walk over the whole table for a planner that
    thinks there are no rows; `offset 0` and what else keeps it for itself forbid that."""
    text = entry.sql if isinstance(entry, Statement) else entry.script
    for lookup in lateral_lookups(code(text).lower()):
        assert "foliot." not in lookup or KEPT_APART.search(lookup), lookup


@pytest.mark.parametrize("entry", [*STATEMENTS, *FUNCTIONS], ids=name)
def test_the_database_draws_no_lots(entry: Statement | StoredFunction) -> None:
    """Chance comes with the arguments, from those who may be told what it is."""
    text = entry.sql if isinstance(entry, Statement) else entry.script
    assert not re.search(r"random|uuid_generate|\buuidv?[47]\b", code(text), re.IGNORECASE)


@pytest.mark.parametrize("function", FUNCTIONS, ids=name)
def test_a_function_has_the_rights_of_its_caller(function: StoredFunction) -> None:
    assert not re.search(r"\bsecurity\s+definer\b", code(function.script), re.IGNORECASE)


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "store" / "functions").rglob("*")), ids=lambda path: path.name
)
def test_every_file_below_functions_is_a_function(path: Path) -> None:
    assert path.suffix == ".sql"
    assert path.stem in set(map(name, FUNCTIONS))
