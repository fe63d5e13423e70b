"""treediff."""
