"""The `foliot` command. Modules import only click; a command's body imports what it needs, so
that `--help` answers at once.
"""
