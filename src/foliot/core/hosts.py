"""Which machine an address names: a name, or an IP address in its one plain spelling.

Programs disagree about how an IPv4 address may be written: 127.1, 0x7f.1, 0177.0.0.1, 2130706433
and digits of other scripts are 127.0.0.1 to one of them and a harmless name to the next. So what
anyone could read as a number is taken only as four plain decimal numbers, and every other host
becomes a name of plain letters before anything is decided about it.
"""

import re
from encodings.idna import ToASCII, nameprep
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from foliot.core.errors import InvalidInput

Address = IPv4Address | IPv6Address
Host = Address | str

NAME_CHARS_MAX: Final = 253
MEMO_SIZE: Final = 4096
LABEL_CHARS_MAX: Final = 63
# Names with an underscore are no host names by the book, and are in use: containers have them.
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Separates labels to some, and is a letter like others to the rest.
_FULL_STOP: Final = "\u3002"


@lru_cache(maxsize=MEMO_SIZE)
def read_host(text: str, field: str) -> Host:
    """The host that `text` is, IPv6 in brackets; raises InvalidInput for what is none."""
    if not text:
        raise InvalidInput("names no host", field=field, hint="write it like https://example.com/x")
    if len(text) > NAME_CHARS_MAX:
        raise _odd(f"has a host of more than {NAME_CHARS_MAX} characters", field, "shorten it")
    if "%" in text:
        raise _odd("has a % in its host", field, "write the name in plain letters, without a zone")
    if text.startswith("[") or ":" in text:
        return _ipv6(text, field)
    name = ".".join(_plain_label(label, field) for label in text.split("."))
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return _ipv4(name, field)
    if len(name) > NAME_CHARS_MAX:
        raise _odd(f"has a host of more than {NAME_CHARS_MAX} characters", field, "shorten it")
    return name


def is_this_machine(host: Host) -> bool:
    """`localhost` and all below it: names that mean loopback, whatever a name server says."""
    return isinstance(host, str) and (host == "localhost" or host.endswith(".localhost"))


def _ipv4(name: str, field: str) -> IPv4Address:
    try:
        return IPv4Address(name)  # four decimal numbers, none with a zero in front
    except ValueError:
        raise _odd(
            f"{name[:80]!r} is not an IPv4 address in its plain form",
            field,
            "write four decimal numbers like 192.0.2.10, or a name",
        ) from None


def _ipv6(text: str, field: str) -> IPv6Address:
    try:
        if text.startswith("[") and text.endswith("]"):
            return IPv6Address(text[1:-1])
    except ValueError:
        pass
    raise _odd(
        f"{text[:80]!r} is not an IPv6 address in brackets", field, "write it like [2001:db8::1]"
    )


def _plain_label(label: str, field: str) -> str:
    """One part of a name in plain letters, which is the only form that travels."""
    lower = label.lower()
    plain = lower if label.isascii() else _without_other_scripts(lower, field)
    if not plain or len(plain) > LABEL_CHARS_MAX or not _LABEL.fullmatch(plain):
        raise _odd(
            "has a host that is no name",
            field,
            "use letters, digits, hyphens and single dots, 63 characters between dots at most",
        )
    return plain


def _without_other_scripts(label: str, field: str) -> str:
    """Refused if it looks like something else: full-width digits and dots, ligatures, joiners."""
    try:
        if not label.isascii() and _FULL_STOP not in label and nameprep(label) == label:
            return ToASCII(label).decode("ascii")
    except UnicodeError:
        pass
    raise _odd(
        "has a host with characters that stand for others",
        field,
        "write the name in plain letters, or in its xn-- form",
    )


def _odd(reason: str, field: str, hint: str) -> InvalidInput:
    return InvalidInput(reason, field=field, hint=hint)
