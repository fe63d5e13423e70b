"""The sources of what a session has read, and the judge and the price of addresses that may carry it out. Pure."""
