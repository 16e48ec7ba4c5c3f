"""A secret that was given to handlers who tell everybody: nothing that is kept or shown has it.

Looked at: every row of every table, every answer of the API, what all processes print, and every
file of the data folder but the database's own.
"""

import base64
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from foliot.runtime.data_directory import read_server_file
from foliot.runtime.envelope import new_key_line
from foliot.runtime.service import run
from foliot.store.connecting import connect
from foliot.testing.commands import clean_environ, eventually, foliot, foliot_up
from foliot.testing.database import sql
from foliot.testing.visitor import Body, Visitor

ZOO: Final = Path(__file__).parent / "zoo"
# Its ends are written alike everywhere, its middle is not.
CANARY: Final = 'canary7f3a9b1c-"/ä+&\\-c0ffee5eed42'
LINES: Final = "first-line-of-the-key-0001\nsecond-line-of-the-key-0002\n"
TABLES: Final = sql(
    "select format('%I.%I', n.nspname, c.relname) as name from pg_class c"
    " join pg_namespace n on n.oid = c.relnamespace"
    " where n.nspname in ('foliot', 'public') and c.relkind in ('r', 'p', 'm') order by 1"
)
JOBS: Final = ("tell", "tell_sync", "fail", "fail_sync", "tell_too_much", "tell_wrongly", "refuse")
ENDS: Final = ("SUCCEEDED", "DEAD_LETTERED", "FAILED")


def forms(value: str) -> set[str]:
    """What must not be found: the value as it may be written, and either end of it."""
    raw = value.encode()
    whole = {
        value,
        json.dumps(value)[1:-1],
        quote(value),
        repr(value)[1:-1],
        repr(raw)[2:-1],
        base64.b64encode(raw).decode().rstrip("="),
        base64.b64encode(b"user:" + raw).decode()[8:28],
        raw.hex(),
    }
    return whole | {value[:12], value[-12:], raw.hex()[:24], raw.hex()[-24:]}


FORBIDDEN: Final = forms(CANARY) | {part for line in LINES.split() for part in forms(line)}


def look_at(where: str, text: str) -> None:
    found = [form for form in FORBIDDEN if form in text]
    assert not found, f"{where} shows {found}: …{text[max(0, text.find(found[0]) - 100) :][:300]}…"


def every_row(url: str) -> dict[str, str]:
    async def read() -> dict[str, str]:
        async with connect(url) as session:
            names = [row["name"] for row in await session.fetch(TABLES)]
            texts = {}
            for name in names:
                rows = await session.fetch(sql(f"select t::text as line from {name} t"))  # noqa: S608
                texts[name] = "\n".join(row["line"] for row in rows)
            return texts

    return run(read())


def files_of(folder: Path) -> Iterator[Path]:
    """All but the tables and the write-ahead log: those are looked at row by row."""
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if path.is_file() and not {"base", "global", "pg_wal"} & set(inside):
            yield path


@pytest.fixture
def data() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="foliot-secret-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder) / "data"


def logs_of(visitor: Visitor, execution_id: str, lines: int) -> Body:
    """Once so many are there: they are written a moment after the end."""

    def look() -> Body | None:
        page = visitor.call("GET", f"/executions/{execution_id}/logs?limit=1000")
        return page if len(page["items"]) >= lines else None

    return eventually(look, what=f"{lines} lines are there")


def all_shown(visitor: Visitor, ended: dict[str, Body]) -> Iterator[Body]:
    """Whatever the API has to say about these executions, and about everything."""
    for handler, execution in ended.items():
        yield execution
        spread = handler in {"tell", "tell_sync", "fail", "fail_sync"}
        yield logs_of(visitor, execution["execution_id"], 27 if spread else 0)
    for path in ("/secrets", "/secrets/CANARY", "/jobs", "/executions", "/workers"):
        yield visitor.call("GET", path)


def trigger(visitor: Visitor, job: Body) -> str:
    """With the job's own payload: in one that came with a request nothing is filled in."""
    return str(visitor.call("POST", f"/jobs/{job['job_id']}/trigger")["execution_id"])


def run_all(visitor: Visitor) -> dict[str, Body]:
    """By handler: how its execution ended."""
    begun: dict[str, str] = {}
    for handler in JOBS:
        payload = {"secret": "${secrets.CANARY}"}
        job = visitor.make_job(handler, payload=payload, retry_policy={"max_attempts": 1})
        made = visitor.call("POST", f"/jobs/{job['job_id']}/trigger")
        look_at("a job", json.dumps([job, made], ensure_ascii=False))
        begun[handler] = made["execution_id"]
    job = visitor.make_job("tell_sync", payload={"secret": "see: ${secrets.PEM}"})
    begun["key"] = trigger(visitor, job)
    return {name: visitor.until(execution_id, *ENDS) for name, execution_id in begun.items()}


def test_nothing_that_is_kept_or_shown_holds_a_secret(data: Path) -> None:
    with foliot_up(data, str(ZOO / "gossip.py")) as ready:
        visitor = Visitor(ready.url, (data / "api-key").read_text().strip())
        for name, value in (("CANARY", CANARY), ("PEM", LINES)):
            written = visitor.call("POST", "/secrets", {"name": name, "value": value})
            look_at("what was written", json.dumps(written, ensure_ascii=False))
        ended = run_all(visitor)
        # They did run with it, and what they said is there, without it.
        assert ended["tell"]["result"]["said"] == "the secret is ***"
        assert ended["key"]["status"] == "SUCCEEDED"
        assert "Indiscretion: ('***'" in ended["fail_sync"]["error"]["message"]
        for answer in all_shown(visitor, ended):
            look_at("an answer", json.dumps(answer, ensure_ascii=False))
        with urlopen(f"{ready.url}/metrics") as metrics:  # noqa: S310 - our own server
            look_at("metrics", metrics.read().decode())
        server = read_server_file(data)
        assert server is not None
        rows = every_row(server.database_url)
        assert "${secrets.CANARY}" in rows["foliot.job_versions"]
        assert len(rows["foliot.secrets"].splitlines()) == 2
        for table, text in rows.items():
            look_at(table, text)
    look_at("what was printed", ready.command.output)
    for file in files_of(data):
        look_at(str(file), file.read_bytes().decode("utf-8", "replace"))


def test_keys_are_changed_while_everything_runs(data: Path) -> None:
    module, keys = str(ZOO / "gossip.py"), data / "secret-keys"
    with foliot_up(data, module) as ready:
        visitor = Visitor(ready.url, (data / "api-key").read_text().strip())
        visitor.call("PUT", "/secrets/CANARY", {"value": CANARY})
        job = visitor.make_job("tell", payload={"secret": "${secrets.CANARY}"})
        later = visitor.make_job("fail", payload={"secret": "${secrets.LATER}"})
        missing = visitor.until(trigger(visitor, later), *ENDS)
        assert missing["error"]["type"] == "MISSING_SECRET"
        assert missing["error"]["message"] == "there is no secret LATER"
        assert missing["attempt_number"] == 1
    assert keys.stat().st_mode & 0o777 == 0o600
    old, new = keys.read_text().strip(), new_key_line()
    keys.write_text(f"{new}\n{old}\n")
    with foliot_up(data, module) as ready:
        environ = clean_environ(FOLIOT_DATA_DIR=str(data))
        for changed in (1, 0):
            with foliot("db", "reseal", "--data-dir", str(data), environ=environ) as command:
                assert command.ended() == 0, command.output
            newest = new.partition(":")[0]
            assert f"{changed} secrets are now under the key {newest}" in command.output
    keys.write_text(f"{new}\n")
    with foliot_up(data, module) as ready:
        visitor = Visitor(ready.url, (data / "api-key").read_text().strip())
        found = visitor.until(trigger(visitor, job), *ENDS)
        assert found["status"] == "SUCCEEDED"


def test_without_keys_nothing_is_resealed(data: Path) -> None:
    data.mkdir()
    with foliot("db", "reseal", "--data-dir", str(data), environ=clean_environ()) as command:
        assert command.ended() == 2
    assert "error: there are no keys (set FOLIOT_SECRET_KEYS" in command.output
