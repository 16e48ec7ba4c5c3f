"""The shapes of requests: names, types and bounds. What they mean together is the core's to say."""
