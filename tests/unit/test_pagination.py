"""Cursors say where a page ended, to their own list and nobody else."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.api.pagination import Pages
from foliot.api.refusals import InvalidCursor

PAGES = Pages("jobs status=ACTIVE")


@given(st.lists(st.one_of(st.none(), st.integers(), st.text()), max_size=4))
@settings(deadline=None, max_examples=100)
def test_what_goes_in_comes_out(place: list[str | int | None]) -> None:
    cursor = PAGES.cursor(place)
    assert PAGES.place(cursor) == place
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&? ")


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=200)
def test_a_made_up_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        PAGES.place(text)


def test_a_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(InvalidCursor):
        Pages("jobs status=PAUSED").place(PAGES.cursor(["a"]))


def test_a_changed_cursor_is_refused() -> None:
    raw = base64.urlsafe_b64decode(PAGES.cursor(["a" * 8]) + "==")
    changed = raw[:6] + json.dumps(["b" * 8], separators=(",", ":")).encode()
    with pytest.raises(InvalidCursor):
        PAGES.place(base64.urlsafe_b64encode(changed).decode().rstrip("="))
