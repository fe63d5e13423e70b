"""Times of day, as people read them on their own clock."""

import time


def clock_time(at: float, now: float | None = None) -> str:
    """Return a time, in seconds since the epoch; without the date where that is the same as that of `now`."""
    local = time.localtime(at)
    today = now is not None and time.localtime(now)[:3] == local[:3]
    return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", local)
