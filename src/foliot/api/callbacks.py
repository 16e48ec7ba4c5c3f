"""The addresses that a job names, when it is saved.

What the text alone tells is refused here, with the way out. A name is judged at every delivery: it
may not resolve yet, and may resolve to something else by then.
"""

from typing import Final

from foliot.api.auth import Visit
from foliot.core.errors import InvalidInput
from foliot.core.headers import check_headers
from foliot.core.model import HttpTarget, Job
from foliot.core.urls import check_url, literal_refusal
from foliot.store.tenants import read_callback_allow

_WAY_OUT: Final = "use a public address; an operator opens others with FOLIOT_CALLBACK_ALLOW"


async def check_callbacks(visit: Visit, job: Job) -> None:
    if isinstance(job.target, HttpTarget):
        check_headers(job.target.headers, "target.headers")
        await _check(visit, job.target.url, "target.url")
    if job.callback_url is not None:
        await _check(visit, job.callback_url, "callback_url")


async def _check(visit: Visit, text: str, field: str) -> None:
    url = check_url(text, field)
    if url is None or literal_refusal(url, visit.callback_allow) is None:
        return
    opened = await read_callback_allow(visit.database, visit.tenant_id)
    why = literal_refusal(url, visit.callback_allow.joined(opened))
    if why is not None:
        raise InvalidInput(why, field=field, hint=_WAY_OUT)
