"""`foliot worker …`: what runs the user's handlers."""

import click

from foliot.cli.exits import Exit


@click.group()
def worker() -> None:
    """Handlers and the processes that run them."""


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
