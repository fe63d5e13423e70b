"""One session, and the resources that sessions share."""
