"""Work on much data, done in a thread, so that the event loop's other tasks have their turns meanwhile.

Rule: only pure functions of what nobody changes, and none that decodes messages, which msgspec may not do in two
threads at once.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar, TypeVarTuple

import outcome
import trio

_Args = TypeVarTuple("_Args")
_T = TypeVar("_T")

AT_ONCE: Final = 500
"""Things that take less time than a thread's start is worth: a few milliseconds."""


async def off_loop(size: int, function: Callable[[*_Args], _T], *arguments: *_Args) -> _T:
    """Return what a function returns; computed in a thread where it goes through more than a few things.

    A caller that is cancelled learns it afterwards. Where no thread can be started, the event loop waits for it.
    """
    if size <= AT_ONCE:
        return function(*arguments)
    found: outcome.Outcome[_T] | None = None
    with trio.CancelScope(shield=True), suppress(RuntimeError):  # Python's word for a thread that cannot be started
        found = await trio.to_thread.run_sync(lambda: outcome.capture(function, *arguments))
    return function(*arguments) if found is None else found.unwrap()


async def in_thread(read: Callable[[Callable[[], bool]], _T]) -> _T:
    """Return what a function returns that may take long; run in a thread, which a cancelled caller does not wait for.

    The function is given what says that nobody waits for it any more.
    """
    left = threading.Event()
    try:
        return await trio.to_thread.run_sync(read, left.is_set, abandon_on_cancel=True)
    finally:
        left.set()
