"""Time, chance, processes and tasks: the only place that waits, draws or starts anything."""
