"""A tour of the engine: a cron every second, a job that fails twice, a long one that tells how far
it is, and one that never ends and is killed.

    foliot up examples/tour.py                            # in one terminal
    python examples/tour.py                               # in another: adds the jobs and watches
"""

import asyncio
import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from foliot import App, Context

app = App()


@app.job
async def tick(context: Context) -> str:
    return f"tick of {context.scheduled_time:%H:%M:%S}"


@app.job
async def flaky(context: Context) -> str:
    if context.attempt_number < 3:
        raise ConnectionError(f"no answer at attempt {context.attempt_number}")
    return f"done at attempt {context.attempt_number}"


@app.job
async def export(rows: int, context: Context) -> dict[str, int]:
    context.logger.info("exporting %d rows", rows)
    for part in range(10):
        context.progress(part * 10, f"{part * rows // 10} of {rows} rows")
        await asyncio.sleep(1)
    return {"rows": rows}


@app.job
def spin() -> None:
    """A busy loop in C's hands or Python's: nobody inside can stop it."""
    while True:
        pass


JOBS = [
    {
        "name": "tick",
        "schedule": {"type": "CRON", "cron_expression": "* * * * * *"},
        "target": {"type": "HANDLER", "name": "tick"},
    },
    {
        "name": "flaky",
        "schedule": {"type": "IMMEDIATE"},
        "target": {"type": "HANDLER", "name": "flaky"},
        "retry_policy": {"initial_delay_seconds": 0.5},
    },
    {
        "name": "export",
        "schedule": {"type": "IMMEDIATE"},
        "target": {"type": "HANDLER", "name": "export"},
        "payload": {"rows": 5000},
    },
    {
        "name": "spin",
        "schedule": {"type": "DELAYED", "delay_seconds": 0.5},
        "target": {"type": "HANDLER", "name": "spin"},
        "timeout_seconds": 3,
        "cancel_grace_seconds": 1,
        "retry_policy": {"max_attempts": 1},
    },
]


def call(method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON of any shape
    """The REST API with nothing but the standard library."""
    url = os.environ.get("FOLIOT_URL", "http://127.0.0.1:8080")
    key = os.environ.get("FOLIOT_API_KEY") or Path(".foliot/api-key").read_text().strip()
    request = urllib.request.Request(
        url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def main() -> None:
    jobs = [call("POST", "/v1/jobs", job) for job in JOBS]
    for _ in range(13):
        time.sleep(1)
        sys.stdout.write("\n")
        for job in jobs:
            for run in call("GET", f"/v1/jobs/{job['job_id']}/executions?limit=1")["items"]:
                said = run["error"] or run["progress"] or run["result"] or ""
                sys.stdout.write(
                    f"{job['name']:8} {run['status']:10} attempt {run['attempt_number']}  {said}\n"
                )
    call("DELETE", f"/v1/jobs/{jobs[0]['job_id']}")


if __name__ == "__main__":
    main()
