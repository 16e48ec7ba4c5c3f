"""The REST edge."""
