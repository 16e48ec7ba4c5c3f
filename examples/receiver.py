"""Receives callbacks of Foliot: signed, none of a replaced attempt, each piece of work once.

    foliot up                                             # in one terminal
    python examples/receiver.py whsec_…                   # in another, with your key

The key is shown when you ask for a new one:

    curl -X POST -H "Authorization: Bearer $FOLIOT_API_KEY" \\
         http://127.0.0.1:8080/v1/signing-keys/rotate

Then give a job the target http://127.0.0.1:8090/work and, if you like, the callback_url
http://127.0.0.1:8090/ended. While a key is being replaced, give both.
"""

import json
import logging
import sys
from collections.abc import Iterable
from typing import Any
from wsgiref.simple_server import make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from foliot.receiver.wsgi import verify

log = logging.getLogger("receiver")


def receive(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    """Gets only what Foliot has signed, once."""
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    told: Any = json.loads(body) if body else None
    if environ["PATH_INFO"] == "/ended":
        data = told["data"]
        log.info("%s %s %s", told["type"], data["execution_id"], data["result"])
    else:
        log.info("work %s %s", environ["HTTP_X_EXECUTION_ID"], told)
    start("200 OK", [("Content-Type", "application/json")])
    return [b'{"done": true}']


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with make_server("127.0.0.1", 8090, verify(receive, keys=sys.argv[1:])) as server:
        log.info("receiving on http://127.0.0.1:8090")
        server.serve_forever()
