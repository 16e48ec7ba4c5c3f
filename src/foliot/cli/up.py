"""`foliot up`: everything on this machine, in one command."""

import click


@click.command()
@click.argument("handlers", metavar="[MODULE_OR_FILE]...", nargs=-1)
@click.option(
    "--data-dir", type=click.Path(readable=False), help="Where data lives.  [default: ./.foliot]"
)
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="0 = a free one.  [default: 8080]")
def up(handlers: tuple[str, ...], data_dir: str | None, host: str | None, port: int | None) -> None:
    """Start everything on this machine and keep it running until Ctrl-C.

    PostgreSQL comes along, unless FOLIOT_DATABASE_URL names one. MODULE_OR_FILE: your handlers,
    a module (shop.mail) or a file (shop/mail.py).
    """
    from foliot.cli.loading import settings_or_exit
    from foliot.runtime.logs import set_up_logging
    from foliot.runtime.service import run
    from foliot.wiring.local import run_until_stopped

    settings = settings_or_exit(data_dir=data_dir, host=host, port=port)
    set_up_logging("up", settings.log_level)
    run(run_until_stopped(settings, handlers, say=click.echo))
