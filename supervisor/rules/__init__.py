"""The rule engine: kinds of changes, what effects touch, what rules say of them. Pure but for its store."""
