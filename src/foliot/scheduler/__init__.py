"""Schedulers: each trade in a file of its own, a pass at a time."""
