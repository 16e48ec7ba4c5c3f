"""The zoo fits the sources as they are: what `make chaos-zoo` lets out later is not a thing of the
past."""

from collections import Counter
from pathlib import Path

import pytest

from chaos.checker import INVARIANTS
from chaos.checker.verdict import Verdict, Witness
from chaos.report import show_verdicts
from chaos.zoo.copying import PRODUCT, ROOT, CutDoesNotFit, apply, broken_sources
from chaos.zoo.guard import Cut, Guard, Invariant, Named
from chaos.zoo.guards import GUARDS
from chaos.zoo.watching import (
    NotInUse,
    Said,
    check_in_use,
    has_verdicts,
    judge_run,
    judge_tests,
    violated,
)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_every_cut_fits_one_place(guard: Guard) -> None:
    for cut in guard.cuts:
        text = (ROOT / PRODUCT / cut.file).read_text(encoding="utf-8")
        assert apply(cut, text) != text


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_who_has_to_notice_is_there(guard: Guard) -> None:
    assert guard.caught_by
    for catcher in guard.caught_by:
        match catcher:
            case Named(node):
                file, _, test = node.partition("::")
                assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")
            case Invariant(name):
                assert name in INVARIANTS


def test_names_are_unique_and_there_are_enough() -> None:
    names = Counter(guard.name for guard in GUARDS)
    assert max(names.values()) == 1
    assert len(names) >= 20


def test_a_cut_that_no_longer_fits_is_refused() -> None:
    with pytest.raises(CutDoesNotFit, match="0 places"):
        apply(Cut("a.sql", "where fence = 1", ""), "select 1")


def test_a_broken_copy_differs_from_the_sources_by_its_cuts_alone() -> None:
    guard = GUARDS[0]
    with broken_sources(guard) as place:
        changed = {
            str(path.relative_to(place / "foliot"))
            for path in (place / "foliot").rglob("*.*")
            if path.read_bytes()
            != (ROOT / PRODUCT / path.relative_to(place / "foliot")).read_bytes()
        }
    assert changed == {cut.file for cut in guard.cuts}


def test_a_copy_is_what_runs_and_what_is_no_copy_is_refused(tmp_path: Path) -> None:
    with broken_sources(None) as place:
        check_in_use(place)
    with pytest.raises(NotInUse):
        check_in_use(tmp_path)


@pytest.mark.parametrize(
    ("line", "error", "caught"),
    [
        ("FAILED a.py::test_b[x y] - assert 1 == 2", "AssertionError", True),
        ("FAILED a.py::test_b - AssertionError: it did not wait", "AssertionError", True),
        ("FAILED a.py::test_b - Failed: DID NOT RAISE <class 'X'>", "AssertionError", True),
        ("FAILED a.py::test_b - foliot.store.errors.Lost: gone", "Lost", True),
        ("FAILED a.py::test_b - foliot.store.errors.Lost: gone", "AssertionError", False),
        (
            "FAILED a.py::test_b - Failed: Timeout (>120.0s) from pytest-timeout.",
            "AssertionError",
            False,
        ),
        ("FAILED a.py::test_b - TimeoutError", "AssertionError", False),
        ("ERROR a.py::test_b - AssertionError: the set-up", "AssertionError", False),
        ("1 passed", "AssertionError", False),
    ],
)
def test_a_test_has_noticed_what_it_fails_for(line: str, error: str, caught: bool) -> None:
    assert judge_tests(Said(f"F\n{line}\n1 failed in 2 s\n", 1), error).caught is caught
    assert not judge_tests(Said(line, 2), error).caught, "pytest itself was in trouble"
    assert not judge_tests(Said(line, None), error).caught, "it was never over"


@pytest.mark.parametrize(
    ("verdict", "caught"),
    [
        (Verdict("no-limbo", 5, 1, (Witness("it waits", ("a row",)),), 1), True),
        (Verdict("no-limbo", 5, 9, (), 0), False),
        (Verdict("no-limbo", 5, 1, (), 0), False),
        (
            Verdict("no-limbo", 5, 1, (Witness("it cannot be checked: KeyError('x')", ()),), 1),
            False,
        ),
        (Verdict("quiet", 5, 1, (Witness("an outcry", ("a line",)),), 1), False),
    ],
    ids=["violated", "too seldom", "well", "senseless", "another"],
)
def test_a_run_has_noticed_what_its_checker_finds_against_the_named(
    verdict: Verdict, caught: bool
) -> None:
    said = Said("\n".join(show_verdicts([verdict])), 1)
    assert has_verdicts(said)
    assert judge_run(said, "no-limbo").caught is caught
    assert violated(said) == ([verdict.name] if verdict.found else [])
    assert not has_verdicts(Said("Traceback (most recent call last):", 1))
