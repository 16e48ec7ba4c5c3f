"""Guards of paused queues: what is paused stays untouched from the answer on."""

from typing import Final

from chaos.zoo.guard import Cut, Guard, Invariant, Named

PAUSES: Final = (
    Guard(
        "paused-queue-in-a-run",
        "a paused queue is claimed from",
        (
            Cut(
                "store/functions/claim.sql",
                "  if is_paused or bite <= 0 then\n",
                "  if bite <= 0 then\n",
            ),
        ),
        (Invariant("pauses-hold"),),
    ),
    Guard(
        "pause-between-two-claims",
        "a claim that is under way takes something after the pause was answered",
        (
            Cut(
                "store/sql/queues/pause.sql",
                "  from pg_advisory_xact_lock(21, hashtext($1::text))\n",
                "  from hashtext($1::text)\n",
            ),
        ),
        (Named("tests/store/test_queues.py::test_a_pause_comes_between_two_claims"),),
    ),
)
