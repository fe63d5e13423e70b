"""The check of msgspec, without which doctor itself cannot begin.

Rule: this imports nothing but what it checks.
"""


def msgspec_problem() -> str:
    """Return what is wrong with msgspec, and what to do; "" where it is well."""
    try:
        import msgspec

        file = getattr(msgspec, "__file__", None)
        why = "" if file else "there is a directory of that name without a package in it"
    except Exception as error:  # noqa: BLE001 - what is broken may raise anything
        why = f"{type(error).__name__}: {error}"
    return f"msgspec cannot be imported ({why}). Try: pip install --force-reinstall msgspec" if why else ""
