"""`foliot version`."""

import click


@click.command()
def show_version() -> None:
    """Print the version."""
    from foliot import __version__

    click.echo(f"foliot {__version__}")
