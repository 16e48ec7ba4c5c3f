"""The rules of the house that no linter knows: where time and chance live, who imports what."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "foliot"
MODULES = sorted(PACKAGE.rglob("*.py"))
CORE = sorted((PACKAGE / "core").rglob("*.py"))

# Only `runtime` knows the time, waits, starts tasks or throws dice: everything else is told.
RUNTIME_ONLY = {
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "time.sleep",
    "asyncio.sleep",
    "asyncio.create_task",
    "asyncio.ensure_future",
    "asyncio.run",
    "loop.create_task",
    "loop.call_later",
    "uuid1",
    "uuid4",
    "uuid6",
    "uuid7",
    "os.urandom",
    "random",
    "secrets",
}
# JSON is the only way in: nothing that a payload could turn into code.
NEVER = {"eval", "exec", "pickle", "marshal", "shelve", "os.system", "yaml.load"}
BANNED_FILES = {"utils", "util", "common", "helpers", "helper", "manager", "misc", "base"}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and (called := dotted(node.func)):
            yield called, node.lineno


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def matches(called: str, banned: set[str]) -> bool:
    return called in banned or any(
        called.endswith(f".{word}") or called.startswith(f"{word}.") for word in banned
    )


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_time_tasks_and_chance_live_in_runtime(path: Path) -> None:
    if "runtime" in path.relative_to(PACKAGE).parts:
        return
    found = [
        f"{called} (line {line})" for called, line in calls(path) if matches(called, RUNTIME_ONLY)
    ]
    assert not found


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_data_never_becomes_code(path: Path) -> None:
    found = [f"{called} (line {line})" for called, line in calls(path) if matches(called, NEVER)]
    assert not found


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_needs_only_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text())
    foreign = [
        module
        for module in imports(tree)
        if module.split(".")[0] not in sys.stdlib_module_names
        and not module.startswith("foliot.core")
    ]
    assert not foreign


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_never_waits(path: Path) -> None:
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    assert not [
        node.lineno for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, waiting)
    ]


def test_settings_need_only_the_standard_library_and_pydantic() -> None:
    tree = ast.parse((PACKAGE / "settings.py").read_text())
    roots = {module.split(".")[0] for module in imports(tree)} - set(sys.stdlib_module_names)
    assert roots <= {"pydantic", "pydantic_settings", "pydantic_core"}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_import_is_hidden(path: Path) -> None:
    """A cycle hidden from the interpreter is still a cycle for the reader.

    The command line is the exception by design: it loads a command's code when it is called, so
    that `foliot --help` answers at once.
    """
    if "cli" in path.relative_to(PACKAGE).parts:
        return
    hidden = [
        node.lineno
        for scope in ast.walk(ast.parse(path.read_text()))
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.If)
        for node in ast.walk(scope)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not hidden


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_is_named_by_its_trade(path: Path) -> None:
    assert path.stem not in BANNED_FILES


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert not text or ast.get_docstring(ast.parse(text))
