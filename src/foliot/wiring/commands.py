"""From the settings to the programs that jobs may run."""

from typing import Final

from foliot.core.commands import Programs, read_programs
from foliot.settings import Settings, variable

COMMANDS: Final = variable("commands")


def allowed_programs(settings: Settings) -> Programs:
    """Raises InvalidInput for what is no path."""
    return read_programs(settings.commands, COMMANDS)
