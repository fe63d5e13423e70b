"""Connections for workers that have no network: judged, looked up, checked, made, handed over."""
