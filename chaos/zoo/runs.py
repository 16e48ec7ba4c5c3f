"""Guards whose absence the checker itself must see, in what a whole run left behind."""

from typing import Final

from chaos.zoo.guard import Cut, Guard, Invariant

CLAIM: Final = "store/functions/claim.sql"
FINISH: Final = "store/functions/finish.sql"

RUNS: Final = (
    Guard(
        "overlap-check-in-a-run",
        "a job that may not overlap runs beside itself",
        (
            Cut(
                "store/functions/fire.sql",
                "when d.busy then 0 else least(d.fires, 1)",
                "else least(d.fires, 1)",
            ),
        ),
        Invariant("overlap-and-misfire"),
    ),
    Guard(
        "cancel-in-a-run",
        "what was asked to stop succeeds all the same",
        (
            Cut(
                FINISH,
                "case when e.cancel_requested_at is not null then 'CANCELLED'",
                "case when false then ''",
            ),
        ),
        Invariant("cancel-holds"),
    ),
    Guard(
        "database-clock-in-a-run",
        "nodes go by their wall clocks, which are minutes off",
        (
            Cut(
                "runtime/server_time.py",
                "return EPOCH + timedelta(seconds=self._clock.monotonic() + self._offset())",
                "return datetime.now(UTC)",
            ),
        ),
        Invariant("no-invention"),
    ),
    Guard(
        "epoch-in-a-run",
        "an old owner of a shard cannot be told from the new one",
        (Cut("store/functions/take_shards.sql", "epoch = l.epoch + 1", "epoch = l.epoch"),),
        Invariant("epochs-rise"),
    ),
    Guard(
        "rescue-in-a-run",
        "what living workers hold is taken from them",
        (
            Cut(
                "store/sql/executions/list_lost.sql",
                " and (w.status is null or w.status = 'DEAD')",
                "",
            ),
        ),
        Invariant("one-claim-at-a-time"),
    ),
    Guard(
        "nobody-rescues-in-a-run",
        "what a dead worker held is held for ever",
        (
            Cut(
                "store/sql/executions/list_lost.sql",
                "(w.status is null or w.status = 'DEAD')",
                "w.status = 'GONE'",
            ),
        ),
        Invariant("no-limbo"),
    ),
    Guard(
        "attempt-count-in-a-run",
        "attempts of what failed are not counted, and it is tried for ever",
        (
            Cut(
                FINISH,
                "case when o.event in ('RETRY', 'LOSE') then 0 else 1 end",
                "case when o.event = 'LOSE' then 0 else 1 end",
            ),
        ),
        Invariant("legal-path"),
    ),
    Guard(
        "dead-letter-in-a-run",
        "what has failed for good is forgotten",
        (
            Cut(
                FINISH,
                "where o.dead_reason is not null and o.status in ('FAILED', 'TIMED_OUT')",
                "where false",
            ),
        ),
        Invariant("dead-letters-once"),
    ),
    Guard(
        "request-key-in-a-run",
        "a request that is sent again is done again",
        (
            Cut(
                "store/functions/remember_request.sql",
                "    if found then\n      return null;\n    end if;\n",
                "    return null;\n",
            ),
            Cut("api/idempotency.py", "    if kept.answer is not None:\n", "    if False:\n"),
            Cut("api/idempotency.py", "    if kept.at_work:\n", "    if False:\n"),
            Cut(
                "core/ids.py",
                "tenant.bytes, job.bytes, request_id.encode()",
                "tenant.bytes, job.bytes, __import__('os').urandom(8)",
            ),
        ),
        Invariant("requests-once"),
    ),
    Guard(
        "queue-limit-in-a-run",
        "more run in a queue than its limit says",
        (Cut(CLAIM, "  if most is not null then\n", "  if false then\n"),),
        Invariant("limits-held"),
    ),
)
