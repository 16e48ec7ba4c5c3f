"""Guards whose absence the checker itself must see, in what a whole run left behind."""

from typing import Final

from chaos.zoo.guard import Cut, Guard, Invariant

CLAIM: Final = "store/functions/claim.sql"
FINISH: Final = "store/functions/finish.sql"

RUNS: Final = (
    Guard(
        "nobody-rescues-in-a-run",
        "what a dead worker held is held for ever",
        (
            Cut(
                "store/sql/executions/list_lost.sql",
                "(w.status is null or w.status = 'DEAD')",
                "w.status = 'GONE'",
            ),
            # Who looks for what the dead left lately, and who ends what runs for too long.
            Cut("store/sql/executions/list_left.sql", "w.status = 'DEAD'", "w.status = 'GONE'"),
            Cut(
                "store/sql/executions/list_overdue.sql",
                "where e.worker_id is not null and (e.worker_id",
                "where false and (e.worker_id",
            ),
        ),
        (Invariant("no-limbo"),),
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
        (Invariant("legal-path"),),
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
        (Invariant("dead-letters-once"),),
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
        (Invariant("requests-once"),),
    ),
    Guard(
        "queue-limit-in-a-run",
        "more run in a queue than its limit says",
        (Cut(CLAIM, "  if most is not null then\n", "  if false then\n"),),
        (Invariant("limits-held"),),
    ),
)
