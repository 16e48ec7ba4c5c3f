"""`foliot server`: one role in one process."""

import click


@click.command()
@click.option(
    "--role",
    type=click.Choice(["api", "scheduler"]),
    required=True,
    help="What this process does.",
)
@click.option(
    "--host",
    help="Address to listen on.  [default: 127.0.0.1]",
)
@click.option("--port", type=click.IntRange(0, 65535), help="0 = a free one.  [default: 8080]")
@click.option("--listen-fd", type=int, help="Serve on this inherited listening socket instead.")
@click.option("--lifeline-fd", type=int, hidden=True)
def server(
    role: str, host: str | None, port: int | None, listen_fd: int | None, lifeline_fd: int | None
) -> None:
    """Run one role against the database of FOLIOT_DATABASE_URL."""
    from foliot.cli.loading import settings_or_exit
    from foliot.runtime.lifeline import leave_with_parent
    from foliot.runtime.logs import set_up_logging

    if lifeline_fd is not None:
        leave_with_parent(lifeline_fd)
    settings = settings_or_exit(host=host, port=port)
    set_up_logging(role, settings.log_level)
    if role == "scheduler":
        from foliot.wiring.scheduler import serve_scheduler

        serve_scheduler(settings)
    else:
        from foliot.wiring.api import serve_api

        serve_api(settings, listen_fd=listen_fd)
