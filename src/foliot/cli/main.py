"""The root command and the one place where an error becomes a line and an exit status."""

import sys

import click

from foliot.cli.database import database
from foliot.cli.exits import Exit, exit_of, fail
from foliot.cli.ledger import ledger
from foliot.cli.server import server
from foliot.cli.up import up
from foliot.cli.version import show_version
from foliot.cli.worker import worker
from foliot.core.errors import FoliotError

EPILOG = """\b
Exit status: 0 ok, 1 error, 2 usage or settings, 9 server or database unreachable, 130 interrupted.
"""


@click.group(
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def foliot() -> None:
    """Cron, queues and workflows on PostgreSQL. Begin with: foliot up"""


foliot.add_command(up)
foliot.add_command(server)
foliot.add_command(database, "db")
foliot.add_command(worker)
foliot.add_command(ledger)
foliot.add_command(show_version, "version")


def main() -> None:
    try:
        status = foliot.main(prog_name="foliot", standalone_mode=False)
    except click.ClickException as refused:
        refused.show()
        sys.exit(refused.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(Exit.INTERRUPTED)
    except FoliotError as error:
        fail([error], exit_of(error))
    except OSError as error:  # a disk, a path or a socket says no: the system's words are clear
        fail([error], Exit.ERROR)
    sys.exit(status or Exit.OK)
