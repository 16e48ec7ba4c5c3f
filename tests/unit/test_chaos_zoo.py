"""The zoo fits the sources as they are: what `make chaos-zoo` lets out later is not a thing of the
past."""

from collections import Counter

import pytest

from chaos.checker import INVARIANTS
from chaos.zoo.copying import PRODUCT, ROOT, CutDoesNotFit, apply, broken_sources
from chaos.zoo.guard import Cut, Guard, Invariant, Named
from chaos.zoo.guards import GUARDS


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
