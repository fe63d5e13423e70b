"""Programs that talk to the daemon. Rule: none of them imports trio or anthropic, so that they are there at once."""
