"""`python -m foliot` is the `foliot` command."""

from foliot.cli.main import main

main()
