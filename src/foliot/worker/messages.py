"""The message that tells of an end, and the call that brings it to its receiver.

Secrets are filled in where the job names them, in the address alone: what an execution returned is
sent as it is. Everything that comes back is masked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from foliot.core.delivery import event_type_of, message_id_of
from foliot.core.errors import PayloadTooLarge
from foliot.core.masking import Masker
from foliot.core.model import ErrorType, Failure, HttpTarget, Json
from foliot.core.secret_references import is_any_in, names_in, substitute_text
from foliot.core.storable import clean_text
from foliot.store.deliveries import ClaimedDelivery
from foliot.store.errors import DatabaseError
from foliot.store.execution_rows import StoredExecution
from foliot.store.execution_views import execution_view
from foliot.worker.discretion import masked_end
from foliot.worker.secrets import MissingSecret, SecretReader
from foliot.worker.tasks import Ended, Executor, Failed, HandedBack, LogRecord, Succeeded, Task

TIMEOUT_SECONDS: Final = 15.0
BODY_BYTES_MAX: Final = 1024 * 1024
# Of a larger body.
ATTEMPTS_MAX: Final = 10
# Of an answer, in the log of a delivery.
PREVIEW_CHARS: Final = 500


class Messenger:
    """`caller` makes the call of an HTTP target."""

    def __init__(self, caller: Executor, reader: SecretReader) -> None:
        self._caller = caller
        self._reader = reader

    async def send(self, claimed: ClaimedDelivery, stored: StoredExecution | None) -> Ended:
        if stored is None:
            return _failed(ErrorType.TARGET_REFUSED, "the execution is no longer kept")
        if claimed.callback_url is None:
            return _failed(ErrorType.TARGET_REFUSED, "the job has no callback_url any more")
        try:
            url, masker = await self._address(claimed, claimed.callback_url)
        except (MissingSecret, PayloadTooLarge) as missing:
            return _failed(ErrorType.MISSING_SECRET, str(missing))
        except DatabaseError as error:
            return HandedBack(f"its secrets cannot be read now: {type(error).__name__}")
        ended = await self._caller.run(_task(claimed, stored, url), _Silence())
        return _cut(ended if masker is None else masked_end(masker, ended))

    async def close(self, *, grace_seconds: float) -> None:
        await self._caller.close(grace_seconds=grace_seconds)

    async def _address(self, claimed: ClaimedDelivery, url: str) -> tuple[str, Masker | None]:
        if not is_any_in(url):
            return url, None
        opened = await self._reader.open(claimed.tenant_id, names_in(url))
        return substitute_text(url, opened.values), opened.masker


def message_of(stored: StoredExecution) -> Mapping[str, Json]:
    """The execution as the API shows it. Of one that was tried very often, the last attempts."""
    data = execution_view(stored)
    message = {
        "type": event_type_of(stored.status),
        "timestamp": stored.finished_at,
        "data": data,
    }
    if len(msgspec.json.encode(message)) > BODY_BYTES_MAX:
        data["attempts"] = data["attempts"][-ATTEMPTS_MAX:]
    return message


def _task(claimed: ClaimedDelivery, stored: StoredExecution, url: str) -> Task:
    message_id = message_id_of(claimed.execution_id)
    return Task(
        execution_id=claimed.execution_id,
        fence=claimed.fence,
        attempt_number=claimed.attempt_number + 1,
        max_attempts=0,
        tenant_id=claimed.tenant_id,
        job_id=stored.job_id,
        job_name=stored.job_name,
        handler="",
        payload=message_of(stored),
        timeout_seconds=TIMEOUT_SECONDS,
        cancel_grace_seconds=0.0,
        run_alone=False,
        scheduled_time=stored.scheduled_time,
        idempotency_key=message_id,
        trigger=stored.trigger,
        trace_id=stored.trace_id,
        http=HttpTarget(url),
        message_id=message_id,
    )


class _Silence:
    """Nobody hears of a delivery while it is under way."""

    def started(self, task: Task) -> None: ...

    def logged(self, task: Task, records: Sequence[LogRecord]) -> None: ...

    def progressed(self, task: Task, percent: float | None, message: str) -> None: ...


def _failed(error_type: ErrorType, message: str) -> Failed:
    return Failed(Failure(error_type, message))


def _cut(ended: Ended) -> Ended:
    """As much of the answer as the log keeps."""
    if not isinstance(ended, Succeeded | Failed) or not isinstance(ended.response, dict):
        return ended
    preview = clean_text(str(ended.response.get("body_preview", "")), PREVIEW_CHARS)
    return replace(ended, response=ended.response | {"body_preview": preview})
