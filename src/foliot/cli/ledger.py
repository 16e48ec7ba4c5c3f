"""`foliot ledger …`: does every scheduled instant have exactly one outcome?"""

import click

from foliot.cli.database import data_dir_option
from foliot.cli.exits import Exit


@click.group()
def ledger() -> None:
    """Every scheduled instant ends in exactly one execution or skip record."""


@ledger.command()
@click.option("--job", metavar="NAME_OR_ID", help="One job only; by id also a deleted one.")
@click.option("--tenant", metavar="ID", help="One tenant's jobs only.  [default: everybody's]")
@click.option("--from", "from_", metavar="TIME", help="First instant, like 2027-01-31T09:00:00Z.")
@click.option("--to", metavar="TIME", help="First instant that is left out.  [default: now]")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@data_dir_option
def verify(
    job: str | None,
    tenant: str | None,
    from_: str | None,
    to: str | None,
    as_json: bool,
    data_dir: str | None,
) -> None:
    """Recount the instants of every schedule while it was in force, and hold the executions and
    skip records against them.

    Changes nothing and may run at any time. Exit status: 0 if the ledger holds, 1 if it does not.
    """
    from foliot.cli.ledger_words import as_document, as_lines
    from foliot.cli.loading import database_url_or_exit
    from foliot.runtime.logs import set_up_logging
    from foliot.runtime.service import run
    from foliot.wiring.ledger import Asked, verify_ledger

    set_up_logging("ledger", "WARNING")
    url = database_url_or_exit(data_dir)
    found = run(verify_ledger(url, Asked(job, tenant, from_, to)))
    if as_json:
        click.echo(as_document(found))
    else:
        for line in as_lines(found):
            click.echo(line)
    if not found.report.holds:
        raise SystemExit(Exit.ERROR)
