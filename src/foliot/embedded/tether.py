"""Becomes another program, as an unprivileged user, that does not outlive the one who asked.

Run as a script by its own path, before anything of Foliot is imported: a fresh single-threaded
process may set itself up at leisure, whereas code between fork and exec of a threaded parent
may hang. On Linux the kernel then sends SIGINT, PostgreSQL's fast shutdown, when the thread that
started us ends; elsewhere the next owner finds and stops what is left.
"""

import ctypes
import os
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
OWNER_IS_GONE_STATUS: Final = 125
CANNOT_RUN_STATUS: Final = 126


def main(owner_pid: int, user_id: int, group_id: int, command: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.umask(0o077)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(group_id)
        os.setuid(user_id)
    if sys.platform == "linux":
        # After the change of user, which would clear it; it survives exec.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    if os.getppid() != owner_pid:
        sys.exit(OWNER_IS_GONE_STATUS)
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error.strerror}\n")
        sys.exit(CANNOT_RUN_STATUS)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
