"""The tree beneath a root: paths, globs, drafts, and names that are protected."""
