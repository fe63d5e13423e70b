"""Make it so: what was told happens in the root, exactly, or not at all."""
