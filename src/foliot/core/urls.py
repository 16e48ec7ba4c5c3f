"""Addresses of callbacks: one strict reading, so that what was checked is what is called.

`read_url` takes an address as it is sent and gives its canonical text; the host in it is a name in
plain letters or an IP address. `check_url` takes one as it is written in a job, where
`${secrets.NAME}` may stand for its beginning or for pieces of its path and query; what the secret
hides is read again when it is sent. A host that is known from the text alone is judged at once, a
name only when it is resolved.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import quote

from foliot.core.addresses import LOOPBACK, refusal
from foliot.core.allow_list import PORT_MAX, AllowList
from foliot.core.errors import InvalidInput
from foliot.core.hosts import Host, is_this_machine, read_host

URL_CHARS_MAX: Final = 8000
PORTS: Final = {"http": 80, "https": 443}
_EXAMPLE: Final = "write it like https://example.com/x"
_PARTS: Final = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.IGNORECASE)
_SECRET: Final = re.compile(r"\$\{secrets\.[^}]*\}")
_PORT: Final = re.compile(r"[0-9]{1,5}")
# Spaces and controls end a request line or a header in somebody's eyes; a backslash is a slash to
# some; halves of surrogate pairs cannot be sent at all.
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff\\]")
_SENT_AS_IT_IS: Final = "!$&'()*+,-./:;=?@_~%[]"


@dataclass(frozen=True, slots=True)
class Url:
    """`rest` is path and query, ready to be sent."""

    scheme: str
    host: Host
    port: int
    rest: str

    @property
    def host_text(self) -> str:
        return f"[{self.host}]" if isinstance(self.host, IPv6Address) else str(self.host)

    @property
    def text(self) -> str:
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host_text}{port}{self.rest}"


def check_url(text: str, field: str) -> Url | None:
    """As it is written in a job; None where a secret stands for the host too."""
    if _SECRET.match(text):
        _check_characters(text, field)
        return None
    parts = _PARTS.fullmatch(text)
    if parts and "${" in parts[2]:
        raise InvalidInput(
            "has a secret in its host",
            field=field,
            hint="let the secret be the whole beginning: ${secrets.NAME}/path",
        )
    return read_url(text, field)


def read_url(text: str, field: str) -> Url:
    """As it is sent; raises InvalidInput, which repeats nothing of the text but its host."""
    _check_characters(text, field)
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise InvalidInput("is not an http or https address", field=field, hint=_EXAMPLE)
    scheme, authority, path, query, fragment = parts.groups()
    if fragment is not None:
        raise InvalidInput(
            "has a #, and what follows one is never sent", field=field, hint="leave it out"
        )
    if "@" in authority:
        raise InvalidInput(
            "has a user or a password in it",
            field=field,
            hint="send an Authorization header, with ${secrets.NAME} for the password",
        )
    host, port = _host_and_port(authority, field)
    scheme = scheme.lower()
    rest = quote((path or "/") + (query or ""), safe=_SENT_AS_IT_IS)
    return Url(scheme, read_host(host, field), port or PORTS[scheme], rest)


def literal_refusal(url: Url, allow: AllowList) -> str | None:
    """Why the address may not be called, as far as it can be told without resolving a name."""
    if is_this_machine(url.host):
        name = str(url.host)
        found = [refusal(one, allow, name=name, port=url.port) for one in LOOPBACK]
        return None if None in found else f"{name} is this machine: {found[0]}"
    if isinstance(url.host, str):
        return None
    return refusal(url.host, allow, port=url.port)


def _check_characters(text: str, field: str) -> None:
    if len(text) > URL_CHARS_MAX:
        raise InvalidInput(
            f"has more than {URL_CHARS_MAX} characters", field=field, hint="send it in the body"
        )
    if _FORBIDDEN.search(text):
        raise InvalidInput(
            "has a space, a backslash or a control character",
            field=field,
            hint="write %20 for a space",
        )


def _host_and_port(authority: str, field: str) -> tuple[str, int | None]:
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        return authority, None
    if not _PORT.fullmatch(port) or not 1 <= int(port) <= PORT_MAX:
        raise InvalidInput(
            "has a port that is none", field=field, hint=f"use a number from 1 to {PORT_MAX}"
        )
    return host, int(port)
