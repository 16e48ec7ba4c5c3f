"""Somebody who uses a running server over HTTP, and nothing else."""

from collections.abc import Mapping
from typing import Any

from foliot.runtime.chance import random_name
from foliot.testing.commands import Reply, ask, eventually

Body = dict[str, Any]


class Visitor:
    """Knows the address and a key."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key

    def try_call(self, method: str, path: str, body: object = None) -> Reply:
        return ask(method, f"{self.url}/v1{path}", body, key=self.key)

    def call(self, method: str, path: str, body: object = None) -> Body:
        """The answer, which must be a good one."""
        status, answer, _ = self.try_call(method, path, body)
        if status >= 300:
            raise AssertionError(f"{method} {path}: {status} {answer}")
        return answer

    def make_job(self, handler: str, schedule: object = None, **fields: object) -> Body:
        """One that only runs when asked, unless it has a schedule."""
        body = {
            "name": f"{handler} {random_name()}",
            "schedule": schedule or {"type": "MANUAL"},
            "target": {"type": "HANDLER", "name": handler},
        }
        return self.call("POST", "/jobs", body | fields)

    def enqueue(self, job: Mapping[str, Any], payload: object = None, **fields: object) -> str:
        """The id of the execution."""
        body = {"job": job["job_id"], "payload": payload} | fields
        return str(self.call("POST", "/executions", body)["execution_id"])

    def pause_crons(self) -> None:
        for job in self.call("GET", "/jobs?schedule_type=CRON&limit=1000")["items"]:
            self.call("POST", f"/jobs/{job['job_id']}/pause")

    def runs(self, job: Mapping[str, Any]) -> list[Body]:
        """Its executions, the newest first."""
        found: list[Body] = self.call("GET", f"/jobs/{job['job_id']}/executions")["items"]
        return found

    def execution(self, execution_id: str) -> Body:
        return self.call("GET", f"/executions/{execution_id}")

    def explain(self, execution_id: str) -> Body:
        return self.call("GET", f"/executions/{execution_id}/explain")

    def until_told(self, execution_id: str, code: str) -> Body:
        """What stands in its way first, once it is this."""

        def look() -> Body | None:
            first: Body = self.explain(execution_id)["blockers"][0]
            return first if first["code"] == code else None

        try:
            return eventually(look, what=f"{code} is in its way")
        except AssertionError as error:
            error.add_note(str(self.explain(execution_id)))
            raise

    def said(self, execution_id: str) -> list[str]:
        """What its attempts have said."""
        lines = self.call("GET", f"/executions/{execution_id}/logs")["items"]
        return [line["message"] for line in lines]

    def until(self, execution_id: str, *statuses: str, within_seconds: float = 30.0) -> Body:
        """The execution, once it has come to one of these."""
        seen: list[Body] = []

        def look() -> Body | None:
            seen[:] = [self.execution(execution_id)]
            return seen[0] if seen[0]["status"] in statuses else None

        try:
            return eventually(look, what=f"it is {statuses}", within_seconds=within_seconds)
        except AssertionError as error:
            error.add_note(str(seen))
            raise
