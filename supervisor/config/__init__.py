"""The configuration: settings, profiles, repositories, fault plans."""
