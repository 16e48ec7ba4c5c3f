"""The paths of the API, one file for each kind of thing."""
