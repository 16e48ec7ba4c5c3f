"""What kept a call from being answered, in the contract's words."""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import aiohttp

from foliot.core.model import ErrorType, Failure

# This machine's own lack: no target is to blame.
_OURS: Final = frozenset(
    {
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
        errno.EADDRNOTAVAIL,
        errno.EAGAIN,  # threads; sockets that are not ready yet are the loop's business
    }
)


def is_ours(error: BaseException) -> bool:
    """Whether this process has no sockets, ports, threads or memory left."""
    return any(isinstance(one, OSError) and one.errno in _OURS for one in _causes(error))


def failure_of(error: BaseException, host: str) -> Failure:
    """`host` is all that is told of the address: the rest may hold a secret."""
    causes = tuple(_causes(error))
    if any(isinstance(one, TimeoutError) for one in causes):
        return Failure(ErrorType.TIMEOUT, f"no connection to {host} in time")
    if isinstance(error, aiohttp.ClientConnectorDNSError) or _has(causes, socket.gaierror):
        return _connection(f"the name {host} could not be resolved", "DNS")
    if _has(causes, ssl.SSLError, ssl.CertificateError, aiohttp.ClientSSLError):
        return _connection(f"no secure connection to {host}: {_tls_words(causes)}", "TLS")
    if isinstance(error, aiohttp.ClientConnectorError):
        words = _system_words(causes) or "it cannot be reached"
        return _connection(f"{host} takes no connection: {words}", "REFUSED")
    if isinstance(error, aiohttp.ClientResponseError):
        return Failure(ErrorType.HTTP_ERROR, f"{host} answered with something that is not HTTP")
    return _connection(f"{host} broke the connection off", "RESET")


def _connection(message: str, detail: str) -> Failure:
    return Failure(ErrorType.CONNECTION, message, detail=detail)


def _has(causes: tuple[BaseException, ...], *kinds: type[BaseException]) -> bool:
    return any(isinstance(one, kinds) for one in causes)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it came from, a few steps back."""
    for _ in range(5):
        if error is None:
            return
        yield error
        inner = getattr(error, "os_error", None)
        error = (
            inner
            if isinstance(inner, BaseException) and inner is not error
            else (error.__cause__ or error.__context__)
        )


def _tls_words(causes: tuple[BaseException, ...]) -> str:
    for one in causes:
        if isinstance(one, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted ({one.verify_message})"
        # aiohttp's own kind of it has none.
        if isinstance(one, ssl.SSLError) and (reason := getattr(one, "reason", None)):
            return str(reason).replace("_", " ").lower()
    return "it does not speak TLS"


def _system_words(causes: tuple[BaseException, ...]) -> str | None:
    for one in causes:
        if isinstance(one, OSError) and (name := errno.errorcode.get(one.errno or 0)):
            return name
    return None
