"""`strongroom batch`: many conversations, a durable line for each."""
