"""Dead letters that their jobs want to be run again after a while, without anybody asking."""

import logging
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Final

from foliot.core.ids import ExecutionId, TenantId
from foliot.store.database import Database
from foliot.store.errors import StatementFailed, may_be_a_row
from foliot.store.replaying import Asker, Replay, ReplayReport, replay
from foliot.store.statements import statement

log = logging.getLogger(__name__)

_LIST_DUE: Final = statement("dead_letters/list_due")
_LEAVE: Final = statement("dead_letters/leave")

BATCH: Final = 200


async def replay_due(
    database: Database, *, batch: int = BATCH, now: datetime | None = None
) -> tuple[int, list[ReplayReport]]:
    """Replay up to `batch` letters whose time has come: how many there were, and what came of them.

    One that cannot be replayed is left to people, so that it stands in nobody's way.
    """
    due = await database.fetch(_LIST_DUE, batch, now)
    reports = []
    by_tenant = sorted(due, key=itemgetter("tenant_id"))
    for tenant, rows in groupby(by_tenant, key=itemgetter("tenant_id")):
        letter_ids = [ExecutionId(row["id"]) for row in rows]
        reports += await _replay(database, TenantId(tenant), letter_ids, now)
    for report in reports:
        for letter_id, refusal in report.refused.items():
            log.info("dead letter %s is not replayed by itself: %s", letter_id, refusal)
        if report.refused:
            await database.execute(_LEAVE, list(report.refused))
    return len(due), reports


async def _replay(
    database: Database,
    tenant_id: TenantId,
    letter_ids: Sequence[ExecutionId],
    now: datetime | None,
) -> list[ReplayReport]:
    """All of them, or if the database will not have that, each by itself."""
    replays = [Replay(letter_id) for letter_id in letter_ids]
    try:
        return [await replay(database, tenant_id, replays, Asker.POLICY, now)]
    except StatementFailed as failed:
        if not may_be_a_row(failed):
            raise
        if len(letter_ids) == 1:
            return [ReplayReport(refused={letter_ids[0]: failed})]
    return [
        report
        for letter_id in letter_ids
        for report in await _replay(database, tenant_id, [letter_id], now)
    ]
