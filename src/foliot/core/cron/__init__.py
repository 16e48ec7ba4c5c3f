"""Cron expressions: `expression` parses them, `clock` finds their instants, `words` says them."""
