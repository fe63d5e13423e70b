"""Tools that no worker runs: what the model is told of them. The supervisor runs them itself, on what it alone has."""
