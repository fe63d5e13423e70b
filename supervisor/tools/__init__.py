"""May it run, and where: the catalog, the policy, the router."""
