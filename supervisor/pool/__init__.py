"""Workers kept alive: child specs, restarts, channels. Knows frames and processes, not what a tool means."""
