"""The proof: a whole Foliot under a seeded workload and seeded faults, and a checker that reads
what it left behind. `make chaos SEED=1 SECONDS=600`."""
