"""Tool calls: the catalog, policy, approval, execution and outcomes."""
