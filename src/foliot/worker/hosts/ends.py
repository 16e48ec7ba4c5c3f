"""From what a handler returned or raised to the message that tells it.

Nothing a handler hands over is trusted to behave: an error whose text cannot be read has a text
all the same, and a result that is not JSON is a failure that names the place.
"""

import asyncio
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from sys import float_info
from typing import Final

import msgspec

from foliot.core.model import ErrorType
from foliot.core.storable import DEPTH_MAX, RESULT_BYTES_MAX, clean_text, to_storable
from foliot.worker.binding import InvalidPayload
from foliot.worker.context import DoNotRetry, Snooze
from foliot.worker.hosts.attempt import Attempt
from foliot.worker.hosts.messages import End, Raised, Returned, Snoozing, Stopped
from foliot.worker.tasks import LogSource

MESSAGE_CHARS_MAX: Final = 8000
# As it travels. What is kept is less, and as JSON none of what is larger than this is that small.
PORTABLE_BYTES_MAX: Final = 1024 * 1024
_OURS: Final = str(Path(__file__).parent)
_ENCODER: Final = msgspec.msgpack.Encoder()


class HandlerLeft(Exception):
    """Stands for its cause, SystemExit or KeyboardInterrupt, which a loop would not survive."""


def end_of_result(attempt: Attempt, result: object) -> End:
    if attempt.stop_asked:
        return Stopped(attempt.ticket)
    if result is None:
        return Returned(attempt.ticket, None)
    if foreign := _first_foreign(result, "result", 0):
        place, kind = foreign
        message = f"{place} is {kind}, which is not JSON: return text, numbers, lists and dicts"
        return Raised(attempt.ticket, ErrorType.HANDLER_ERROR, message, do_not_retry=False)
    portable = _portable(result)
    if portable is None:
        kept = to_storable(result, RESULT_BYTES_MAX)
        return Returned(attempt.ticket, json.loads(kept.text), is_marker=kept.truncated)
    return Returned(attempt.ticket, portable)


def end_of_error(attempt: Attempt, error: BaseException) -> End:
    """Raises nothing: what it raised would end the process, and others with it."""
    try:
        return _end_of_error(attempt, error)
    except BaseException:  # noqa: BLE001 - an error may be of a class that lies in every way
        message = "it failed with an error that cannot be told"
        return Raised(attempt.ticket, ErrorType.HANDLER_ERROR, message, do_not_retry=False)


def _end_of_error(attempt: Attempt, error: BaseException) -> End:
    ticket = attempt.ticket
    if isinstance(error, HandlerLeft):
        error = error.__cause__ or error
    if attempt.stop_asked:
        return Stopped(ticket)
    match error:
        case Snooze(seconds) if _is_duration(seconds):
            return Snoozing(ticket, float(seconds))
        case DoNotRetry():
            return Raised(ticket, ErrorType.HANDLER_ERROR, _text(error), do_not_retry=True)
        case InvalidPayload():
            return Raised(ticket, ErrorType.INVALID_PAYLOAD, _text(error), do_not_retry=False)
        case asyncio.CancelledError():
            message = "it cancelled itself: nobody had asked it to stop"
            return Raised(ticket, ErrorType.HANDLER_ERROR, message, do_not_retry=False)
        case _:
            return _end_of_failure(attempt, error)


def _end_of_failure(attempt: Attempt, error: BaseException) -> End:
    attempt.log("ERROR", LogSource.LOG, trace_of(error))
    message = clean_text(f"{type(error).__name__}: {_text(error)}", MESSAGE_CHARS_MAX)
    return Raised(
        attempt.ticket, ErrorType.HANDLER_ERROR, message.removesuffix(": "), do_not_retry=False
    )


def _is_duration(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 <= seconds <= float_info.max


def _text(error: BaseException) -> str:
    return clean_text(_read(lambda: str(error)), MESSAGE_CHARS_MAX)


def trace_of(error: BaseException) -> str:
    """The user's frames: how the handler was called is of no interest."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    shown = frames or error.__traceback__
    return _read(lambda: "".join(traceback.format_exception(type(error), error, shown)).rstrip())


def _read(read: Callable[[], str]) -> str:
    try:
        return read()
    except BaseException as trouble:  # noqa: BLE001 - the user's __str__ may raise anything
        return f"(its text cannot be read: reading it raises {type(trouble).__name__})"


def _portable(result: object) -> msgspec.Raw | None:
    """`result`, written once; None where it cannot be sent as it is."""
    try:
        written = _ENCODER.encode(result)
    except Exception:  # noqa: BLE001 - half a surrogate, a huge number, a cycle, a class of their own
        return None
    return msgspec.Raw(written) if len(written) <= PORTABLE_BYTES_MAX else None


def _first_foreign(value: object, place: str, depth: int) -> tuple[str, str] | None:
    """The first part that JSON has no form for: its place and its type."""
    kind = type(value)
    if value is None or issubclass(kind, str | int | float) or depth > DEPTH_MAX:
        return None
    if isinstance(value, dict):
        for key, item in dict.items(value):
            if not isinstance(key, str):
                return f"a key of {place}", _article(type(key))
            if found := _first_foreign(item, f"{place}.{clean_text(key, 80)}", depth + 1):
                return found
        return None
    if isinstance(value, list | tuple):
        for n, item in enumerate(value):
            if found := _first_foreign(item, f"{place}[{n}]", depth + 1):
                return found
        return None
    return place, _article(kind)


def _article(kind: type) -> str:
    name = clean_text(kind.__name__, 80)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
