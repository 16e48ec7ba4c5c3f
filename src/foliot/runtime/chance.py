"""Chance, for what nobody may guess or what no two may share."""

import random
import secrets
from uuid import UUID, uuid4

_GENERATOR = random.SystemRandom()


def random_secret() -> str:
    """192 bits of the system's randomness, in letters that need no quoting anywhere."""
    return secrets.token_urlsafe(24)


def random_key() -> bytes:
    """256 bits, to sign with."""
    return secrets.token_bytes(32)


def random_name() -> str:
    """Sixteen letters and digits: unique for all practical purposes."""
    return secrets.token_hex(8)


def random_fraction() -> float:
    """From 0 up to and without 1."""
    return _GENERATOR.random()


def fresh_id() -> UUID:
    """An identity that nobody had before: a process has a new one at each start."""
    return uuid4()
