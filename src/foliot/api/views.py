"""What is stored, in the full shape of the contract. What nobody counts yet is null."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice

from foliot.core.explanation import Explanation, Reason
from foliot.core.ids import JobId
from foliot.core.model import Job, Schedule
from foliot.core.schedule.timeline import Occurrence
from foliot.core.schedule.words import describe
from foliot.core.states import JobState
from foliot.core.zones import zone
from foliot.store.definitions import target_type
from foliot.store.execution_views import View, duration_ms
from foliot.store.fleet import Schedulers, StoredWorker
from foliot.store.job_lists import RecentEnd
from foliot.store.job_rows import JobVersion, StoredJob
from foliot.store.logs import LogLine
from foliot.store.queues import StoredQueue


def job_view(stored: StoredJob, ends: Sequence[RecentEnd]) -> View:
    """`ends` are of its finished executions, the newest first."""
    last = ends[0] if ends else None
    return definition_view(stored.job, stored.status_note) | {
        "next_run_at": stored.next_run_at,
        "last_run_at": last.started_at if last else None,
        "stats": {
            "total_runs": None,
            "success_rate": None,
            "avg_duration_ms": None,
            "p95_duration_ms": None,
            "last_status": last.status if last else None,
        },
        "created_at": stored.created_at,
        "updated_at": stored.updated_at,
    }


def end_view(end: RecentEnd) -> View:
    return {
        "execution_id": end.execution_id,
        "status": end.status,
        "scheduled_time": end.scheduled_time,
        "finished_at": end.finished_at,
        "duration_ms": duration_ms(end.started_at, end.finished_at),
    }


def version_view(version: JobVersion) -> View:
    """A job as it was from `valid_from` on."""
    return definition_view(version.job, version.note) | {
        "changed_by": version.changed_by,
        "valid_from": version.valid_from,
    }


def definition_view(job: Job, note: str | None = None) -> View:
    return {
        "job_id": job.job_id,
        "tenant_id": job.tenant_id,
        "name": job.name,
        "description": job.description,
        "status": job.status,
        "version": job.version,
        "created_by": job.created_by,
        "managed_by": job.managed_by,
        "status_note": note,
        "schedule": job.schedule,
        "target": {"type": target_type(job.target), **asdict(job.target)},
        "payload": job.payload,
        "retry_policy": job.retry_policy,
        "timeout_seconds": job.timeout_seconds,
        "cancel_grace_seconds": job.cancel_grace_seconds,
        "start_deadline_seconds": job.start_deadline_seconds,
        "priority": job.priority,
        "queue": job.queue,
        "requires": sorted(job.requires),
        "region": job.region,
        "concurrency": job.concurrency,
        "rate_limit": job.rate_limit,
        "dead_letter": job.dead_letter,
        "callback_url": job.callback_url,
        "tags": job.tags,
        "labels": job.labels,
    }


def log_view(line: LogLine) -> View:
    return {
        "attempt_number": line.attempt_number,
        "fence": line.fence,
        "seq": line.seq,
        "at": line.at,
        "level": line.level,
        "source": line.source,
        "message": line.message,
    }


def explanation_view(told: Explanation) -> View:
    return {
        "execution_id": told.execution_id,
        "status": told.status,
        "summary": told.summary,
        "blockers": [
            {name: getattr(reason, name) for name in Reason.__slots__} for reason in told.reasons
        ],
    }


def worker_view(stored: StoredWorker) -> View:
    return {name: getattr(stored, name) for name in StoredWorker.__slots__}


def queue_view(stored: StoredQueue) -> View:
    """Its status is that of a job that is paused or not."""
    status = JobState.ACTIVE if stored.paused_at is None else JobState.PAUSED
    return {name: getattr(stored, name) for name in StoredQueue.__slots__} | {"status": status}


def schedulers_view(found: Schedulers) -> View:
    """All of them: there are a handful."""
    return {
        "items": [
            {
                "scheduler_id": node.scheduler_id,
                "host": node.host,
                "version": node.version,
                "status": "ACTIVE" if node.alive else "DEAD",
                "shards": node.shards,
                "started_at": node.started_at,
                "last_seen_at": node.last_seen_at,
            }
            for node in found.nodes
        ],
        "next_cursor": None,
        "shards_without_owner": found.shards_without_owner,
        "lag_seconds": found.lag_seconds,
    }


def preview_view(
    schedule: Schedule,
    fires: Iterator[Occurrence],
    count: int,
    *,
    seed: str = "",
    job_names: Mapping[JobId, str] | None = None,
) -> View:
    """The next `count` fires, and the schedule in words."""
    here = zone(schedule.timezone)
    return {
        "description": describe(schedule, seed=seed, job_names=job_names or {}),
        "fires": [
            {
                "at": fire.instant,
                "local": fire.instant.astimezone(here).isoformat(),
                "note": fire.note,
            }
            for fire in islice(fires, count)
        ],
    }
