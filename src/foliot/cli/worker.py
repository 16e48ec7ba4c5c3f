"""`foliot worker …`: what runs the user's handlers and calls HTTP targets."""

import click

from foliot.cli.exits import Exit


@click.group()
def worker() -> None:
    """Handlers and the processes that run them."""


@worker.command()
@click.option(
    "--queues", help="Queues to serve, separated by commas; * for all.  [default: default]"
)
@click.option("--concurrency", type=int, help="Attempts at once.  [default: 16]")
@click.option("--labels", help="What jobs may require, separated by commas.")
@click.option("--region", help="Where this worker is.")
@click.option("--name", help="How it is called in lists.  [default: the host's name]")
@click.option(
    "--drain-seconds", type=float, help="Time to finish when told to leave.  [default: 30]"
)
@click.option(
    "--data-dir",
    type=click.Path(readable=False),
    help="Folder of a running `foliot up`; if given, it wins over FOLIOT_DATABASE_URL."
    "  [default: ./.foliot]",
)
@click.option("--lifeline-fd", type=int, hidden=True)
@click.option("--patient", is_flag=True, hidden=True)
@click.argument("targets", metavar="[MODULE_OR_FILE]...", nargs=-1)
def run(
    targets: tuple[str, ...],
    name: str | None,
    lifeline_fd: int | None,
    patient: bool,
    **options: object,
) -> None:
    """Call HTTP targets and run the handlers of these modules, until Ctrl-C.

    Works for the database of FOLIOT_DATABASE_URL, or of a `foliot up` in the same folder. The first
    SIGTERM or Ctrl-C lets what runs finish; a second one ends it at once.
    """
    from foliot.cli.loading import database_url_or_exit, settings_or_exit
    from foliot.runtime.lifeline import leave_with_parent
    from foliot.runtime.logs import set_up_logging
    from foliot.wiring.worker import serve_worker
    from foliot.worker.modules import ModuleNotImported

    if lifeline_fd is not None:
        leave_with_parent(lifeline_fd)
    settings = settings_or_exit(worker_name=name, **options)
    set_up_logging("worker", settings.log_level)
    data_dir = options["data_dir"]
    url = database_url_or_exit(str(data_dir) if data_dir else None)

    def tell(error: ModuleNotImported) -> None:
        click.echo(f"{error.trace}error: {error}", err=True)
        if patient:
            click.echo("the rest keeps running; edit the file to try again", err=True)

    try:
        serve_worker(settings, url, targets, tell=tell if patient else None)
    except ModuleNotImported as error:
        tell(error)
        raise SystemExit(Exit.ERROR) from None


@worker.command()
@click.option("--lifeline-fd", type=int, hidden=True)
@click.argument("targets", metavar="MODULE_OR_FILE...", nargs=-1, required=True)
def check(targets: tuple[str, ...], lifeline_fd: int | None) -> None:
    """Import handlers as a worker would, and say what was found."""
    from foliot.runtime.lifeline import leave_with_parent
    from foliot.worker.modules import ModuleNotImported, import_handlers

    if lifeline_fd is not None:
        leave_with_parent(lifeline_fd)
    failed = False
    for target in targets:
        try:
            imported = import_handlers(target)
        except ModuleNotImported as error:
            failed = True
            click.echo(f"{error.trace}error: {error}", err=True)
        else:
            click.echo(f"imported {imported.name} from {imported.path or 'the environment'}")
    if failed:
        raise SystemExit(Exit.ERROR)
