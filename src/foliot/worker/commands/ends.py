"""How a program ended, from its exit status to the end of the attempt.

0 is success. Any other status is a failure that is tried again, but for those by which a program
says that the call itself is wrong (sysexits.h). A signal is named.
"""

import errno
import os
import signal
from collections.abc import Mapping
from typing import Any, Final

from foliot.core.model import ErrorType, Failure
from foliot.worker.tasks import Ended, Failed, Held, Succeeded

# usage, data, no permission, configuration: the same call would end the same way.
NOT_AGAIN: Final = frozenset({os.EX_USAGE, os.EX_DATAERR, os.EX_NOPERM, os.EX_CONFIG})
NOT_FOUND, NOT_EXECUTABLE = 127, 126
OWN_LACK_SECONDS: Final = 1.0
_OWN_LACK: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC})
_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR})


def end_of(told: Mapping[str, Any], program: str) -> Ended:
    """From what the host tells of it."""
    if "errno" in told:
        return end_of_start(told["errno"], told["reason"], program)
    status: int = told["status"]
    if status == 0:
        value = told["json"]
        plain = {"exit_code": 0, "stdout": told["stdout"]}
        return Succeeded(plain if value is None else value)
    words = f"the program {words_of(status)}"
    said = told["stderr"].strip()
    message = f"{words}: {said}" if said else words
    detail = _signal_name(-status) if status < 0 else str(status)
    again = status not in NOT_AGAIN
    return Failed(Failure(ErrorType.EXIT_CODE, message, detail=detail, do_not_retry=not again))


def end_of_start(number: int | None, reason: str, program: str) -> Ended:
    """It could not even be started. A file that is missing here may be there later, or elsewhere;
    too many arguments stay too many."""
    if number in _OWN_LACK:
        return Held(OWN_LACK_SECONDS, f"this machine cannot start another program: {reason}")
    message = f"{program} cannot be run: {reason}"
    code = NOT_FOUND if number in _MISSING else NOT_EXECUTABLE
    is_final = number == errno.E2BIG
    return Failed(Failure(ErrorType.EXIT_CODE, message, detail=str(code), do_not_retry=is_final))


def words_of(status: int) -> str:
    if status < 0:
        return f"was ended by {_signal_name(-status)}{_hint(-status)}"
    if status > 128 and (name := _known_signal(status - 128)):
        return f"exited with status {status}, as shells say of {name}{_hint(status - 128)}"
    return f"exited with status {status}"


def _hint(number: int) -> str:
    return " (out of memory?)" if number == signal.SIGKILL else ""


def _signal_name(number: int) -> str:
    return _known_signal(number) or f"signal {number}"


def _known_signal(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
