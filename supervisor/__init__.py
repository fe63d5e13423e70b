"""The mind: the conversation, what may run, and the pool of workers that run it."""
