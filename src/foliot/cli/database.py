"""`foliot db …`: the schema of the database."""

import click


@click.group()
def database() -> None:
    """The database of FOLIOT_DATABASE_URL, or of a running `foliot up`."""


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(readable=False),
    help="Folder of a running `foliot up`; if given, it wins over FOLIOT_DATABASE_URL."
    "  [default: ./.foliot]",
)


@database.command()
@data_dir_option
def migrate(data_dir: str | None) -> None:
    """Bring the schema to the level of this version. Safe to run at any time, by anyone.

    Give Foliot a role of its own: its timeouts become that role's defaults in that database, for
    everyone who connects with it. Each one set is said.
    """
    import logging

    from foliot.cli.loading import database_url_or_exit
    from foliot.runtime.clock import SystemClock
    from foliot.runtime.logs import set_up_logging
    from foliot.runtime.service import run
    from foliot.store.migrate import migrate as apply_migrations

    set_up_logging("db", "WARNING")
    logging.getLogger("foliot.store.safety").setLevel("INFO")
    url = database_url_or_exit(data_dir)
    applied = run(apply_migrations(url, SystemClock()))
    for name in applied:
        click.echo(f"applied {name}")
    if not applied:
        click.echo("nothing to do: the schema is up to date")


@database.command()
@data_dir_option
def reseal(data_dir: str | None) -> None:
    """Put every secret under the first key of FOLIOT_SECRET_KEYS.

    The others are needed until then. Safe to run at any time, and again.
    """
    from foliot.cli.exits import Exit, fail
    from foliot.cli.loading import database_url_or_exit, settings_or_exit
    from foliot.runtime.service import run
    from foliot.wiring.keys import opening_keyring, reseal_all

    settings = settings_or_exit(data_dir=data_dir)
    keyring = opening_keyring(settings)
    if keyring is None:
        fail(["there are no keys (set FOLIOT_SECRET_KEYS to the new one and the old)"], Exit.USAGE)
    done = run(reseal_all(settings, database_url_or_exit(data_dir), keyring))
    click.echo(f"{done.changed} secrets are now under the key {keyring.newest}")
    if done.left:
        fail([f"{done.left} cannot be opened with these keys and stay as they are"], Exit.ERROR)


@database.command()
@data_dir_option
def status(data_dir: str | None) -> None:
    """Say which migrations are applied and which are pending."""
    from foliot.cli.loading import database_url_or_exit
    from foliot.runtime.service import run
    from foliot.store.migrate import schema_status
    from foliot.store.url import without_password

    url = database_url_or_exit(data_dir)
    found = run(schema_status(url))
    click.echo(f"database {without_password(url)}")
    for name in found.applied:
        click.echo(f"applied  {name}")
    for name in found.pending:
        click.echo(f"pending  {name}")
    click.echo("run `foliot db migrate`" if found.pending else "the schema is up to date")
