"""More requests than the API can answer, for a few seconds, from clients without patience."""

import asyncio
import time
from random import Random
from typing import Final

import aiohttp

from chaos.faults.stage import Moment, Stage, Strike
from chaos.node import Role

SECONDS: Final = (2.0, 4.0)
CLIENTS: Final = (20, 60)
PATIENCE_SECONDS: Final = 2.0
PATHS: Final = ("/v1/jobs?limit=50", "/v1/executions?limit=50", "/readyz", "/v1/nowhere")


async def overload(stage: Stage, chance: Random) -> None:
    clients, seconds = chance.randint(*CLIENTS), chance.uniform(*SECONDS)
    began, answers = Moment(), list[int]()
    end = began.monotonic + seconds
    headers = {"Authorization": f"Bearer {stage.cluster.key}"}
    patience = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
    connector = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(
        stage.cluster.url, headers=headers, timeout=patience, connector=connector
    ) as session:
        asking = (_ask(session, path, end, answers) for path in chance.choices(PATHS, k=clients))
        await asyncio.gather(*asking)
    detail = {"clients": clients, "answers": len(answers)}
    stage.note("overload", "api", began, detail=detail, lasted=True)


async def _ask(session: aiohttp.ClientSession, path: str, end: float, answers: list[int]) -> None:
    while time.monotonic() < end:
        try:
            async with session.get(path) as answer:
                await answer.read()
                answers.append(answer.status)
        except (aiohttp.ClientError, TimeoutError, OSError):
            await asyncio.sleep(0.05)


OVERLOADS: Final = (
    Strike("overload", 2, lambda stage: bool(stage.cluster.well(Role.API)), overload),
)
