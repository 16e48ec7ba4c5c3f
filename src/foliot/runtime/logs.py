"""One log line per event, on stderr: `2026-11-15T20:30:01.123Z INFO api listening on …`."""

import logging
import sys
import time


def set_up_logging(role: str, level: str) -> None:
    formatter = logging.Formatter(
        f"%(asctime)s.%(msecs)03dZ %(levelname)s {role} %(message)s", "%Y-%m-%dT%H:%M:%S"
    )
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # What it says about its own start and stop is said by the role in its own words.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, logging.getLogger().level))
