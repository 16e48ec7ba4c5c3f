"""References to secrets, filled in: once, everywhere, and nothing else is touched."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.secret_references import check_references, names_in, substitute

names = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)
plain = st.text("abAB_$ {}", max_size=12).filter(lambda text: "${" not in text)
vaults = st.dictionaries(
    names, st.text(max_size=20) | st.just("${secrets.A}"), min_size=1, max_size=4
)


def json_of(texts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        texts | st.none() | st.booleans() | st.integers(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain, inner, max_size=4),
        max_leaves=12,
    )


@st.composite
def filled(draw: st.DrawFn) -> tuple[dict[str, str], Any, Any]:
    """Values, a payload, and what it should come to; built side by side."""
    vault = draw(vaults)
    chosen = st.sampled_from(sorted(vault))
    piece = st.one_of(
        # A dollar before a reference would be an escape.
        plain.filter(lambda text: not text.endswith("$")).map(lambda text: (text, text)),
        chosen.map(lambda name: ("${secrets." + name + "}", vault[name])),
        chosen.map(lambda name: ("$${secrets." + name + "}", "${secrets." + name + "}")),
    )
    marked = draw(json_of(st.lists(piece, max_size=4).map(tuple)))

    def build(value: Any, side: int) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, tuple):
            return "".join(pair[side] for pair in value)
        if isinstance(value, dict):
            return {key: build(inner, side) for key, inner in value.items()}
        return [build(inner, side) for inner in value] if isinstance(value, list) else value

    return vault, build(marked, 0), build(marked, 1)


@settings(max_examples=300, deadline=None)
@given(filled())
def test_a_payload_comes_to_what_its_parts_come_to(case: tuple[dict[str, str], Any, Any]) -> None:
    vault, payload, expected = case
    check_references(payload, "payload")
    assert names_in(payload) <= vault.keys()
    assert substitute(payload, vault) == expected


@settings(max_examples=200, deadline=None)
@given(json_of(st.text(max_size=30)))
def test_what_asks_for_nothing_is_unchanged(payload: Any) -> None:  # noqa: ANN401 - any JSON
    if not names_in(payload) and "${secrets." not in str(payload):
        assert substitute(payload, {}) == payload
