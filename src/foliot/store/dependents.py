"""Which jobs follow which others, kept with the jobs themselves: in the transactions that make,
edit and delete them.

A job cannot follow one that is not there, nor itself by however long a way. Whoever changes what
follows what, does so alone for the tenant, and takes that lock before the lock of any job.
"""

from typing import Final

from foliot.core.dag.graph import find_cycle
from foliot.core.errors import CycleDetected, InvalidSchedule
from foliot.core.ids import JobId, TenantId
from foliot.core.model import AfterOn, Job
from foliot.store.session import Session
from foliot.store.statements import statement

_LOCK_TENANT: Final = statement("dependents/lock_tenant")
_LOCK_PARENTS: Final = statement("dependents/lock_parents")
_READ_ANCESTORS: Final = statement("dependents/read_ancestors")
_PUT_PARENTS: Final = statement("dependents/put_parents")
_LIST_CHILDREN: Final = statement("dependents/list_children")
_LIST_DELETED_PARENTS: Final = statement("dependents/list_deleted_parents")

FIELD: Final = "after.jobs"
NAMED_IN_MESSAGE: Final = 10


async def lock_to_follow(session: Session, job: Job) -> None:
    """Before the lock of any job: what follows what stays as it is. Only for a job that follows."""
    if job.schedule.after is not None:
        await session.execute(_LOCK_TENANT, job.tenant_id, None)


async def lock_to_delete(session: Session, tenant_id: TenantId, job_id: JobId) -> None:
    """The same for a job that others follow, if there are any."""
    await session.execute(_LOCK_TENANT, tenant_id, job_id)


async def put_parents(session: Session, job: Job) -> None:
    """The job follows those that its schedule names, and no others, from now on."""
    after = job.schedule.after
    if after is None:
        await leave_parents(session, job)
        return
    await _check_parents(session, job.tenant_id, after.jobs)
    await _check_cycles(session, job, after.jobs)
    needs_success = after.on is AfterOn.SUCCEEDED
    await session.execute(_PUT_PARENTS, job.job_id, job.tenant_id, list(after.jobs), needs_success)


async def leave_parents(session: Session, job: Job) -> None:
    """The job follows nobody any more."""
    await session.execute(_PUT_PARENTS, job.job_id, job.tenant_id, [], False)


async def list_children(session: Session, job_id: JobId) -> tuple[JobId, ...]:
    """Those that follow the job, in the order in which jobs are locked."""
    return tuple(row["child_id"] for row in await session.fetch(_LIST_CHILDREN, job_id))


async def check_parents_are_there(session: Session, job: Job) -> None:
    """Before a job goes on: it would wait for ever for a parent that is deleted."""
    if job.schedule.after is None:
        return
    rows = await session.fetch(_LIST_DELETED_PARENTS, job.job_id)
    if rows:
        names = ", ".join(repr(row["name"]) for row in rows)
        raise InvalidSchedule(
            f"it follows {names}, deleted meanwhile", FIELD, "name other jobs, then resume it"
        )


async def _check_parents(session: Session, tenant_id: TenantId, parents: tuple[JobId, ...]) -> None:
    rows = await session.fetch(_LOCK_PARENTS, list(parents), tenant_id)
    missing = set(parents) - {row["id"] for row in rows}
    if missing:
        names = ", ".join(map(str, sorted(missing)))
        raise InvalidSchedule(f"there is no job {names}", FIELD, "name jobs that are there")


async def _check_cycles(session: Session, job: Job, parents: tuple[JobId, ...]) -> None:
    names: dict[str, str] = {str(job.job_id): job.name}
    # The job comes first, so that a cycle is told from there; what it followed before is over.
    edges: dict[str, list[str]] = {str(job.job_id): [str(parent) for parent in parents]}
    for row in await session.fetch(_READ_ANCESTORS, list(parents)):
        names.setdefault(str(row["child_id"]), row["name"])
        edges.setdefault(str(row["child_id"]), [str(parent) for parent in row["parent_ids"]])
    cycle = find_cycle(edges)
    if cycle is None:
        return
    named = tuple(names[each] for each in cycle)
    shown = named if len(named) <= NAMED_IN_MESSAGE else (*named[:NAMED_IN_MESSAGE], "…")
    raise CycleDetected(
        f"{' follows '.join(shown)}: none of these {len(named) - 1} jobs could ever fire",
        FIELD,
        f"leave out {named[1]!r}",
        cycle=named,
    )
