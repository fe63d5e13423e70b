"""Packs of what committed calls replaced, and the plan of taking calls back."""
