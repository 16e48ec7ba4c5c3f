"""What a program knows of where it runs: a few fixed variables, the attempt's facts, the job's own.

Nothing of the worker's environment is among them: that has the database's password.
"""

from collections.abc import Mapping
from typing import Final

from foliot.core.model import CommandTarget
from foliot.worker.tasks import Task

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WORDS: Final = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
# What the interpreter of the host itself may need to be found, and where scratch folders go.
_KEPT_FOR_HOSTS: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "TMPDIR")


def environment_of(task: Task, target: CommandTarget, folder: str) -> dict[str, str]:
    """The job's own win over the fixed ones; those of the attempt are not for it to set."""
    fixed = {"PATH": PATH, "HOME": folder, "TMPDIR": folder, **_WORDS}
    return fixed | dict(target.env) | facts_of(task)


def facts_of(task: Task) -> dict[str, str]:
    return {
        "FOLIOT_EXECUTION_ID": str(task.execution_id),
        "FOLIOT_JOB_ID": str(task.job_id),
        "FOLIOT_JOB_NAME": task.job_name,
        "FOLIOT_ATTEMPT_NUMBER": str(task.attempt_number),
        "FOLIOT_FENCE": str(task.fence),
        "FOLIOT_IDEMPOTENCY_KEY": task.idempotency_key,
        "FOLIOT_SCHEDULED_TIME": task.scheduled_time.isoformat().replace("+00:00", "Z"),
    }


def environment_of_hosts(environ: Mapping[str, str]) -> dict[str, str]:
    """A program may read that of the process that started it."""
    return {name: environ[name] for name in _KEPT_FOR_HOSTS if name in environ} | _WORDS
