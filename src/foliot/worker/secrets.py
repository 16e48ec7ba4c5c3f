"""Secrets at the last moment: just before an attempt begins, in the worker that makes it.

What is opened is known for two seconds, so that a flood of attempts does not ask the database for
each, and a new value is in use two seconds after it was written. A payload that came with a
request is left as it is: text of strangers must not be able to ask for a secret. Whoever was given
a secret has a masker with it: nothing that the attempt says leaves the worker without.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from foliot.core.errors import FoliotError, PayloadTooLarge
from foliot.core.ids import TenantId
from foliot.core.masking import Masker
from foliot.core.model import CommandTarget, ErrorType, Failure, HttpTarget
from foliot.core.secret_references import (
    NAMES_MAX,
    check_added,
    check_growth,
    is_any_in,
    names_in,
    substitute,
    substitute_command,
    substitute_http,
)
from foliot.runtime.clock import Clock
from foliot.runtime.envelope import Keyring
from foliot.store.database import Database
from foliot.store.errors import DatabaseError
from foliot.store.secrets import OpenedSecrets, open_secrets
from foliot.worker.tasks import Failed, HandedBack, Task

KNOWN_SECONDS: Final = 2.0
KNOWN_MAX: Final = 64

Names = frozenset[str]


@dataclass(eq=False)
class MissingSecret(FoliotError):
    """A secret that is asked for is not there, or does not open; says which, never what."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Opened:
    values: Mapping[str, str]
    masker: Masker


@dataclass(frozen=True, slots=True)
class Ready:
    """A task with its secrets in place; without a masker it has none."""

    task: Task
    masker: Masker | None = None


class SecretReader:
    """Without a `keyring` tasks that ask for a secret fail."""

    def __init__(self, database: Database, keyring: Keyring | None, clock: Clock) -> None:
        self._database = database
        self._keyring = keyring
        self._clock = clock
        self._known: OrderedDict[tuple[UUID, Names], tuple[float, Opened]] = OrderedDict()
        self._reading = asyncio.Lock()

    async def prepare(self, task: Task) -> Ready | Failed | HandedBack:
        """The task as it is to be run, or why it cannot be."""
        parts = _parts_with_secrets(task)
        if not is_any_in(*parts):
            return Ready(task)
        try:
            opened = await self.open(TenantId(task.tenant_id), names_in(*parts))
            check_growth(opened.values, *parts)
            return Ready(_filled(task, opened.values), opened.masker)
        except MissingSecret as missing:
            return _failed(ErrorType.MISSING_SECRET, str(missing))
        except PayloadTooLarge as refused:
            return _failed(ErrorType.INVALID_PAYLOAD, str(refused))
        except DatabaseError as error:
            return HandedBack(f"its secrets cannot be read now: {type(error).__name__}")

    async def open(self, tenant_id: TenantId, names: Names) -> Opened:
        """The values of these, or MissingSecret, or what the database says."""
        if not names:
            return Opened({}, Masker(()))
        if len(names) > NAMES_MAX:
            raise MissingSecret(f"it asks for {len(names)} secrets: {NAMES_MAX} are allowed")
        key = (tenant_id, names)
        # One asks at a time: the others find what it was told.
        if (known := self._recall(key)) is not None:
            return known
        async with self._reading:
            if (known := self._recall(key)) is not None:
                return known
            asked_at = self._clock.monotonic()
            found = await open_secrets(self._database, self._keyring, tenant_id, sorted(names))
            _check(found)
            check_added(map(len, found.values.values()))
            opened = Opened(found.values, Masker(found.values.values()))
            self._known[key] = (asked_at, opened)
            while len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
            return opened

    def _recall(self, key: tuple[UUID, Names]) -> Opened | None:
        """What is too old is forgotten, whoever's it is."""
        oldest = self._clock.monotonic() - KNOWN_SECONDS
        while self._known:
            first = next(iter(self._known))
            if self._known[first][0] > oldest:
                break
            del self._known[first]
        asked_at, opened = self._known.get(key, (0.0, None))
        return opened if asked_at > oldest else None


def _filled(task: Task, values: Mapping[str, str]) -> Task:
    return replace(
        task,
        payload=substitute(task.payload, values) if task.payload_is_jobs else task.payload,
        http=None if task.http is None else substitute_http(task.http, values),
        command=None if task.command is None else substitute_command(task.command, values),
    )


def asks_for_secrets(task: Task) -> bool:
    return is_any_in(*_parts_with_secrets(task))


def _parts_with_secrets(task: Task) -> Sequence[object]:
    payload = task.payload if task.payload_is_jobs else None
    if task.http is None and task.command is None:
        return (payload,)
    return (payload, *_parts_of(task.http), *_parts_of(task.command))


def _parts_of(target: HttpTarget | CommandTarget | None) -> Sequence[object]:
    match target:
        case HttpTarget(url, _, headers):
            return (url, headers)
        case CommandTarget(argv, env):
            return (argv, env)
        case None:
            return ()


def _check(found: OpenedSecrets) -> None:
    if found.missing:
        raise MissingSecret(f"there is no secret {', '.join(found.missing)}")
    for name, reason in (found.unopenable or {}).items():
        raise MissingSecret(f"the secret {name} cannot be opened: {reason}")


def _failed(error_type: ErrorType, message: str) -> Failed:
    return Failed(Failure(error_type, message, do_not_retry=True))
