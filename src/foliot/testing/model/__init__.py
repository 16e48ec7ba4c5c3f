"""The store in dictionaries: slow, single-threaded and small enough to believe."""
