"""The server's settings, written anew before every start, and who may connect.

Production's defaults where a laptop can bear them: nothing here trades durability for speed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

PORT: Final = 5432  # only a part of the socket's file name: nothing listens on the network

CLIENT_RULES: Final = "# Written by Foliot at every start.\nlocal all all scram-sha-256\n"

DEFAULTS: Final[Mapping[str, str]] = {
    "cluster_name": "foliot",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "jit": "off",  # our statements are short; compiling one costs more than running it
    "autovacuum_naptime": "10s",  # the queue's head moves fast and leaves dead rows behind
    "client_connection_check_interval": "5s",  # a statement whose client is gone is given up
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    # One file for each day of the week, emptied when its day comes round again.
    "logging_collector": "on",
    "log_destination": "stderr",
    "log_filename": "postgresql-%a.log",
    "log_file_mode": "0600",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_checkpoints": "off",
}


def configuration(overrides: Mapping[str, str], *, sockets: Path, logs: Path) -> str:
    fixed = {
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": '"' + str(sockets).replace('"', '""') + '"',
        "unix_socket_permissions": "0700",
        "log_directory": str(logs),
    }
    values = {**DEFAULTS, **overrides, **fixed}
    lines = [f"{name} = {_quoted(value)}" for name, value in values.items()]
    return "\n".join(["# Written by Foliot at every start.", *lines]) + "\n"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n") + "'"
