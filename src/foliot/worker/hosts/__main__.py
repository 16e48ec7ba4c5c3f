"""`python -m foliot.worker.hosts FD warm|cold TARGET…`: the nursery, started by the worker.

Warm, it imports the targets and forks hosts that have them; cold, every host imports them itself.
"""

import os
import signal
import socket
import sys

from foliot.runtime.family import die_with_parent
from foliot.worker.hosts.growing import grow
from foliot.worker.hosts.nursery import Nursery


def main() -> None:
    fd, parent, mode, *targets = sys.argv[1:]
    # Before there are hosts nothing needs to be tidied up; after that the socket's end is heeded.
    die_with_parent(int(parent), signal.SIGTERM)
    nursery = Nursery(socket.socket(fileno=int(fd)), grow, targets)
    if mode == "cold" or nursery.import_modules():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        nursery.serve()
    sys.stdout.flush()
    os._exit(0)


main()
