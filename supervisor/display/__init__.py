"""Text for people: escaped, measured in columns, and the one wording of what a call changes. Pure."""
