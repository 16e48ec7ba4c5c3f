"""Processes that run the user's code, apart from the one that claims, beats and finishes.

The worker's own process starts a *nursery*, which imports the user's modules once and then only
forks and buries. Its children are *hosts*: a shared one runs many async handlers on a loop, the
others run one handler at a time. Each is told what to do over a socket of its own. Deadlines are
kept by the worker; a host that does not do as told is killed, with all that it has started.
"""
