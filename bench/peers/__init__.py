"""How fast a full queue is drained, by our worker and by four peers, on one machine in one run."""
