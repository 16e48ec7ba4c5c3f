"""One fingerprint per kind of failure, so that ten thousand dead letters read as three groups.

What changes from one occurrence to the next (numbers, ids, times, quoted values) is taken out of
the message; what is left, with the type and the status, is hashed. Every pattern reads the text
once: a hostile message costs its length, and only its beginning counts.
"""

import hashlib
import re
from typing import Final

from foliot.core.model import Failure

_RAW_LENGTH_MAX: Final = 8000
_LENGTH_MAX: Final = 500
_QUOTED: Final = r"""(?<!\w)(?:'[^'\n]{0,200}'|"[^"\n]{0,200}"|`[^`\n]{0,200}`)(?!\w)"""
_UUID: Final = r"(?<!\w)[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?!\w)"
_TIME: Final = (
    r"(?<!\w)[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?"
    r"(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?!\w)"
)
_NUMBER: Final = r"(?<!\w)[-+]?[0-9]+(?:[.,:][0-9]+)*(?:[eE][-+]?[0-9]+)?\w*"
_TOKEN: Final = re.compile(f"{_QUOTED}|{_UUID}|{_TIME}|{_NUMBER}|\\w+")
_HEX: Final = re.compile(r"[0-9a-fA-F]{8,}")
_DIGIT: Final = re.compile(r"\d")


def fingerprint(failure: Failure) -> str:
    """Sixteen hex digits, equal for failures of the same kind."""
    parts = (failure.type, str(failure.http_status), normalise(failure.message))
    text = "\0".join(parts).encode(errors="replace")
    return hashlib.blake2b(text, digest_size=8, person=b"foliot-failure").hexdigest()


def normalise(message: str) -> str:
    """`message` with each value that names one occurrence replaced by #."""
    plain = _TOKEN.sub(_replacement, message[:_RAW_LENGTH_MAX])
    return " ".join(plain.split())[:_LENGTH_MAX]


def _replacement(match: re.Match[str]) -> str:
    token = match[0]
    is_value = token[0] in "'\"`" or _DIGIT.search(token) or _HEX.fullmatch(token)
    return "#" if is_value else token
