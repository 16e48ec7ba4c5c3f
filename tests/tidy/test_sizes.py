"""A file has one trade and a function fits on a screen. There is no list of exceptions."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("src", "tests", "scripts", "docs", "bench", "chaos")
    for path in (ROOT / folder).rglob("*.py")
)
FILE_LINES, FUNCTION_LINES, STATEMENT_LINES, STORED_FUNCTION_LINES = 400, 50, 80, 120


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its decorators and docstring: prose does not make it longer."""
    doc = node.body[0] if ast.get_docstring(node) is not None else None
    prose = (doc.end_lineno or 0) - doc.lineno + 1 if doc else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - prose


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_file_has_one_trade(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    long = {
        f"{node.name} (line {node.lineno})": body_lines(node)
        for node in functions(ast.parse(path.read_text()))
        if body_lines(node) > FUNCTION_LINES
    }
    assert not long


@pytest.mark.parametrize("path", sorted((ROOT / "src").rglob("sql/**/*.sql")), ids=name)
def test_a_statement_fits_on_a_screen(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= STATEMENT_LINES


@pytest.mark.parametrize("path", sorted((ROOT / "src").rglob("functions/*.sql")), ids=name)
def test_a_stored_function_has_one_trade(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= STORED_FUNCTION_LINES
