"""Targets that are programs: run without a shell, with nothing of the worker's own, in bounds.

A program runs in a host of its own, a process that the nursery of commands has forked, so that
time, cancellation, the death of the worker and what is left behind are handled as they are for
handlers. The host starts the program in a session of its own, reads what it says, and tells how it
ended; what that means is decided in the worker.
"""
