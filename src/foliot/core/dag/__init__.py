"""Workflows: `graph` is the definition, `run` decides what follows when a task ends."""
