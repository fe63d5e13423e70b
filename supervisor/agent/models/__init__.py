"""Language models: one file a provider."""
