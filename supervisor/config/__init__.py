"""What the operator decides: settings, profiles, repositories, fault plans."""
