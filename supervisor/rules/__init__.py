"""The rule engine: patterns, what effects touch, what rules say of them. Pure but for its store."""
