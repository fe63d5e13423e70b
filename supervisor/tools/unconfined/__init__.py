"""unconfined."""
