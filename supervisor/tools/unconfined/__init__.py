"""Commands outside of the sandbox, each with a warden process that ends it."""
