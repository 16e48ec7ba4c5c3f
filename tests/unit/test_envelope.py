"""Sealed values: they open with the right key, in the right place, unchanged, and not otherwise."""

import base64
from dataclasses import replace

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from foliot.runtime.envelope import (
    BrokenSeal,
    Keyring,
    UnknownKey,
    Unopenable,
    context_of,
    new_key_line,
)

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
PLACE = context_of("secret", "tenant", "TOKEN", 1)
VALUE = b"the value \xff\x00"
RING = Keyring([("old", OLD)])


def test_what_was_sealed_opens() -> None:
    sealed = RING.seal(VALUE, PLACE)
    assert sealed.key_id == "old"
    assert VALUE not in sealed.ciphertext
    assert RING.open(sealed, PLACE) == VALUE
    assert RING.open(RING.seal(b"", PLACE), PLACE) == b""


def test_the_same_value_is_never_sealed_alike() -> None:
    first, second = RING.seal(VALUE, PLACE), RING.seal(VALUE, PLACE)
    assert first.nonce != second.nonce
    # Neither the wrapped key nor the value under it shows that they are equal.
    assert first.ciphertext[:48] != second.ciphertext[:48]
    assert first.ciphertext[60:] != second.ciphertext[60:]


def test_the_first_key_seals_and_all_open() -> None:
    sealed = RING.seal(VALUE, PLACE)
    both = Keyring([("new", NEW), ("old", OLD)])
    assert both.newest == both.seal(VALUE, PLACE).key_id == "new"
    assert both.open(sealed, PLACE) == VALUE


def test_a_value_changes_its_key_without_being_opened() -> None:
    sealed = RING.seal(VALUE, PLACE)
    moved = Keyring([("new", NEW), ("old", OLD)]).rewrap(sealed, PLACE)
    assert moved.key_id == "new"
    assert moved.ciphertext[48:] == sealed.ciphertext[48:]
    assert Keyring([("new", NEW)]).open(moved, PLACE) == VALUE
    with pytest.raises(UnknownKey):
        RING.open(moved, PLACE)


def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownKey, match=r"'old', which FOLIOT_SECRET_KEYS does not have"):
        Keyring([("new", NEW)]).open(RING.seal(VALUE, PLACE), PLACE)


def test_another_key_under_the_same_id_does_not_open_it() -> None:
    with pytest.raises(BrokenSeal):
        Keyring([("old", NEW)]).open(RING.seal(VALUE, PLACE), PLACE)


@pytest.mark.parametrize(
    "elsewhere",
    [
        context_of("secret", "other", "TOKEN", 1),
        context_of("secret", "tenant", "OTHER", 1),
        context_of("secret", "tenant", "TOKEN", 2),
        context_of("webhook", "tenant", "TOKEN", 1),
        b"",
    ],
)
def test_a_value_opens_only_in_its_place(elsewhere: bytes) -> None:
    sealed = RING.seal(VALUE, PLACE)
    for way in (RING.open, RING.rewrap):
        with pytest.raises(BrokenSeal):
            way(sealed, elsewhere)


def test_the_value_is_bound_to_its_place_by_itself() -> None:
    """Also for whoever has got hold of its key."""
    sealed = RING.seal(VALUE, PLACE)
    wrapped, nonce, body = (sealed.ciphertext[a:b] for a, b in ((0, 48), (48, 60), (60, None)))
    data_key = AESGCM(OLD).decrypt(sealed.nonce, wrapped, context_of("old") + PLACE)
    assert AESGCM(data_key).decrypt(nonce, body, PLACE) == VALUE
    with pytest.raises(InvalidTag):
        AESGCM(data_key).decrypt(nonce, body, None)


def test_the_parts_of_a_place_cannot_be_shifted() -> None:
    assert context_of("ab", "c") != context_of("a", "bc")
    assert context_of("a", "") != context_of("", "a") != context_of("a")


def test_every_changed_byte_is_noticed() -> None:
    sealed = RING.seal(b"short", PLACE)
    for at in range(len(sealed.ciphertext)):
        changed = bytearray(sealed.ciphertext)
        changed[at] ^= 1
        with pytest.raises(BrokenSeal):
            RING.open(replace(sealed, ciphertext=bytes(changed)), PLACE)
    for at in range(len(sealed.nonce)):
        nonce = bytearray(sealed.nonce)
        nonce[at] ^= 1
        with pytest.raises(BrokenSeal):
            RING.open(replace(sealed, nonce=bytes(nonce)), PLACE)


def test_what_was_cut_short_does_not_open() -> None:
    sealed = RING.seal(b"short", PLACE)
    for length in range(len(sealed.ciphertext)):
        with pytest.raises(BrokenSeal):
            RING.open(replace(sealed, ciphertext=sealed.ciphertext[:length]), PLACE)
    for nonce in (b"", sealed.nonce[:8], sealed.nonce * 2):
        with pytest.raises(BrokenSeal):
            RING.open(replace(sealed, nonce=nonce), PLACE)


def test_the_id_of_another_key_does_not_open_it() -> None:
    both = Keyring([("new", NEW), ("old", OLD)])
    with pytest.raises(BrokenSeal):
        both.open(replace(both.seal(VALUE, PLACE), key_id="old"), PLACE)


def test_no_error_and_no_ring_shows_a_key_or_a_value() -> None:
    ring = Keyring([("old", b"k" * 32)])
    assert repr(ring) == str(ring) == "Keyring(old)"
    sealed = ring.seal(b"v" * 40, PLACE)
    for broken in (replace(sealed, key_id="none"), replace(sealed, nonce=b"")):
        with pytest.raises(Unopenable) as refused:
            ring.open(broken, PLACE)
        assert "kkk" not in str(refused.value)
        assert "vvv" not in str(refused.value)
        assert refused.value.__cause__ is None


@pytest.mark.parametrize("between", [" ", ",", "\n", " ,\r\n "])
def test_keys_are_read_as_the_setting_has_them(between: str) -> None:
    lines = [
        f"new:{base64.b64encode(NEW).decode()}",
        f"old:{base64.urlsafe_b64encode(OLD).decode()}",
    ]
    ring = Keyring.parse(f" {between.join(lines)}\n")
    assert ring.newest == "new"
    assert ring.open(RING.seal(VALUE, PLACE), PLACE) == VALUE
    without_padding = Keyring.parse(lines[1].rstrip("="))
    assert without_padding.open(RING.seal(VALUE, PLACE), PLACE) == VALUE


@pytest.mark.parametrize("text", ["", "old", "old:", "old:AAAA", f"a:{'A' * 43}=,a:{'B' * 43}="])
def test_what_is_no_ring_of_keys_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"key|id|base64"):
        Keyring.parse(text)


def test_a_new_key_is_another_each_time_and_can_be_read() -> None:
    first, second = new_key_line(), new_key_line()
    assert first != second
    ring = Keyring.parse(f"{first} {second}")
    assert ring.open(ring.seal(VALUE, PLACE), PLACE) == VALUE


def test_a_mac_is_known_again_by_its_key_alone() -> None:
    assert RING.mac(b"x") == Keyring([("a", OLD), ("b", NEW)]).mac(b"x")
    assert RING.mac(b"x") != RING.mac(b"y")
    assert RING.mac(b"x") != Keyring([("old", NEW)]).mac(b"x")
