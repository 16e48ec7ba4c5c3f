"""How processes tell each other that there is something to do: hints, never the truth."""
