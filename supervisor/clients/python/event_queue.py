"""Events of one session, from the link's thread to the one who waits for the next.

Rule: while nobody waits for a request's end only questions are kept; each is put to whoever waits next, unless it is
withdrawn before. Everything happens under one lock, and nothing in it blocks.
"""

import threading
from collections import deque
from concurrent.futures import Future

from supervisor.clients.connection.link_events import PermissionPrompt, SessionEvent

Heard = SessionEvent | None
"""An event; None is the end of the request."""


class EventQueue:
    """A queue with one consumer at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: deque[Heard] = deque()
        self._next: Future[Heard] | None = None
        """What was asked for, and not taken yet."""
        self._awaited = False
        self._number = 0
        """Of the request that is waited for."""

    def begin(self) -> int:
        """Let somebody wait for the next request, and return its number.

        What was heard before is dropped, but for questions.
        """
        with self._lock:
            given = [self._next.result()] if self._next is not None and self._next.done() else []
            self._next = None
            self._events = deque(each for each in [*given, *self._events] if isinstance(each, PermissionPrompt))
            self._awaited = True
            self._number += 1
            return self._number

    def put(self, event: SessionEvent) -> None:
        with self._lock:
            if self._awaited or isinstance(event, PermissionPrompt):
                self._add(event)

    def withdraw(self, prompt: PermissionPrompt) -> None:
        """Forget a question that needs no answer any more."""
        with self._lock:
            if prompt in self._events:
                self._events.remove(prompt)

    def end(self, number: int) -> None:
        """Add the end of a request, if it is the one that is waited for."""
        with self._lock:
            if number == self._number:
                self._awaited = False
                self._add(None)

    def next(self) -> "Future[Heard]":
        """Return what the next event comes in; the same one until it is taken."""
        with self._lock:
            if self._next is None:
                self._next = Future()
                if self._events:
                    self._next.set_result(self._events.popleft())
            return self._next

    def taken(self) -> None:
        """Note that the event which `next` gave was seen to."""
        with self._lock:
            self._next = None

    def _add(self, event: Heard) -> None:
        if self._next is not None and not self._next.done():
            self._next.set_result(event)
        else:
            self._events.append(event)
