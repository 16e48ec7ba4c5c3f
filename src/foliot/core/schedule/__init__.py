"""When a job fires: its `occurrences`, what moves or holds them, and what being late means."""
