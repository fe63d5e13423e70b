"""The command line: one file a group of commands, named as the commands are."""
