"""The address of a database: checked before it is used, and shown only without its password.

A password with an unescaped `@`, `/`, `?` or `#` moves the borders between the parts, so that a
piece of it would be taken for a host or a path, and printed. Such an address is refused unseen.
"""

import os
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from foliot.store.errors import InvalidDatabaseUrl

SCHEMES: Final = frozenset({"postgresql", "postgres"})
EXAMPLE: Final = "write it as postgresql://user:password@host:5432/database"
FILE_OPTIONS: Final = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
SECRET_OPTIONS: Final = frozenset({"password", "sslpassword"})
ESCAPE: Final = "percent-encode special characters in the password: @ is %40, / is %2F, # is %23"


def check_url(url: str) -> None:
    """Raise `InvalidDatabaseUrl` for what the driver would misread or answer with a riddle."""
    if any(character.isspace() for character in url):
        raise InvalidDatabaseUrl("contains a space or a line break", hint=EXAMPLE)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidDatabaseUrl("is not a URL", hint=EXAMPLE) from None
    if parts.scheme not in SCHEMES:
        scheme = f"begins with {parts.scheme}:" if "://" in url else "has no scheme"
        raise InvalidDatabaseUrl(f"{scheme}, not with postgresql:", hint=EXAMPLE)
    if parts.netloc.count("@") > 1 or "@" in parts.path or "#" in url:
        raise InvalidDatabaseUrl("has a special character where none can be", hint=ESCAPE)
    _check_ports(parts)
    _check_options(parts)


def _check_ports(parts: SplitResult) -> None:
    hosts = parts.netloc.rpartition("@")[2]
    for host in hosts.split(","):
        port = host.rpartition("]")[2].partition(":")[2]
        if port and not (port.isdecimal() and 0 < int(port) < 65536):
            raise InvalidDatabaseUrl("has a port that is no number from 1 to 65535", hint=ESCAPE)


def _check_options(parts: SplitResult) -> None:
    if not parts.query:
        return
    try:
        options = dict(parse_qsl(parts.query, strict_parsing=True))
    except ValueError:
        reason = "has options that are not name=value pairs after the ?"
        raise InvalidDatabaseUrl(reason, hint=ESCAPE) from None
    for name in FILE_OPTIONS:
        # The driver would say as much of a file as of a socket: that something is not there.
        if name in options and not _is_readable(Path(options[name])):
            raise InvalidDatabaseUrl(
                f"{name} names {options[name]}, which cannot be read",
                hint="correct the path, or let this user read the file",
            )


def _is_readable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)


def without_password(url: str) -> str:
    """The address as it may be logged."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(malformed)"
    credentials, at, hosts = parts.netloc.rpartition("@")
    netloc = f"{credentials.partition(':')[0]}{at}{hosts}"
    options = [(key, value) for key, value in parse_qsl(parts.query) if key not in SECRET_OPTIONS]
    query = urlencode(options, safe="/:,", quote_via=quote)
    return f"{parts.scheme}://{netloc}{parts.path}{'?' if query else ''}{query}"
