"""Chance, for what nobody may guess or what no two may share."""

import secrets


def random_secret() -> str:
    """192 bits of the system's randomness, in letters that need no quoting anywhere."""
    return secrets.token_urlsafe(24)


def random_name() -> str:
    """Sixteen letters and digits: unique for all practical purposes."""
    return secrets.token_hex(8)
