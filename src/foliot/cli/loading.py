"""From options and environment to settings. Commands import this late: it loads pydantic."""

from foliot.cli.exits import Exit, fail
from foliot.runtime.data_directory import read_server_file
from foliot.settings import Settings, SettingsInvalid, load_settings


def settings_or_exit(**options: object) -> Settings:
    try:
        return load_settings(options)
    except SettingsInvalid as refused:
        fail(refused.problems, Exit.USAGE)


def database_url_or_exit(data_dir: str | None) -> str:
    """The database meant: of the `up` in a folder that was named, of the environment, of the
    `up` in the usual folder."""
    settings = settings_or_exit(data_dir=data_dir)
    if not data_dir and settings.database_url is not None:
        return settings.database_url.get_secret_value()
    server = read_server_file(settings.data_dir)
    if server is None:
        reason = f"no server runs in {settings.data_dir}"
        fix = "start one with `foliot up`, or set FOLIOT_DATABASE_URL"
        fail([f"{reason} ({fix})"], Exit.SERVER_UNREACHABLE)
    return server.database_url
