"""A whole Foliot in one thread, on virtual time: its real trades, a store in dictionaries, faults.

The scheduler's and the worker's own code runs, unchanged: each pass is a coroutine that stops where
it asks the database, and the simulation decides when the question arrives, what happens to it and
when the answer comes back. Only PostgreSQL is not there: what the statements do is done by the
model in `foliot.testing.model`, which the store's state machine holds against the real server, step
by step (`tests/store/test_store_machine.py`). What that model does not have is done again here, and
held against the server by other tests: leases (`tests/store/test_shards.py`), jobs that follow
others (`tests/store/test_following_machine.py`), the heartbeat and the lists of what is lost
(`tests/store/test_workers.py`, `test_rescue.py`). A number decides everything: the same number, the
same events.
"""
