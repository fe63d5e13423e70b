"""The queue of a session's events: what is kept, for whom, and where it ends."""

from supervisor.acp import extensions
from supervisor.clients.python.event_queue import EventQueue
from tests.supervisor.clients.shared import asked

STATES = [extensions.TurnState(session_id="s", state=state, turn=1) for state in ("Thinking", "Done")]


def taken(queue: EventQueue) -> object:
    event = queue.next().result(0)
    queue.taken()
    return event


def test_events_come_in_their_order_up_to_the_end_of_the_request() -> None:
    queue = EventQueue()
    number = queue.begin()
    waited_for = queue.next()
    for state in STATES:
        queue.put(state)
    queue.end(number)
    assert waited_for is queue.next(), "who has given up waiting gets the same one again"
    assert [taken(queue) for _ in range(3)] == [*STATES, None]


def test_the_end_of_an_earlier_request_ends_no_later_one() -> None:
    queue = EventQueue()
    first, second = queue.begin(), queue.begin()
    queue.end(first)
    queue.put(STATES[0])
    queue.end(second)
    assert [taken(queue) for _ in range(2)] == [STATES[0], None]


def test_a_question_waits_for_whoever_comes_and_what_else_was_heard_is_dropped() -> None:
    queue = EventQueue()
    prompt, withdrawn = (asked(tool="write_file", arguments="{}")[0] for _ in range(2))
    number = queue.begin()
    queue.put(STATES[0])
    queue.next()
    queue.end(number)
    for event in (STATES[1], prompt, withdrawn):
        queue.put(event)
    queue.withdraw(withdrawn)
    queue.end(queue.begin())
    assert [taken(queue) for _ in range(2)] == [prompt, None]
