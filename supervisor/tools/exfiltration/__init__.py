"""exfiltration."""
