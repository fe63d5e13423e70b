"""Frames as they come from a pipe."""

import gc
import os
import threading
import tracemalloc
from collections.abc import Iterator

import pytest

from supervisor.pool.frame_reader import FrameReader
from tests.supervisor.pool.harness import descriptors_limited
from workers.wire import frames


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """Return both ends of a pipe, as a channel has them."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    yield read, write
    for each in (read, write):
        os.close(each)


def test_a_look_sees_nothing_where_nothing_comes_and_still_sees_the_next_that_does(ends: tuple[int, int]) -> None:
    read, write = ends
    reader = FrameReader(read, lambda _: None)
    assert not reader.comes_at_once()
    os.write(write, b"\0")
    assert reader.comes_at_once()


def test_a_look_takes_the_end_of_the_pipe_for_something_to_read(ends: tuple[int, int]) -> None:
    read, write = ends
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, write)
    os.close(null)
    reader = FrameReader(read, lambda _: None)
    assert reader.comes_at_once()
    assert reader.read() == 0


def test_a_descriptor_that_select_cannot_have_is_not_looked_at(ends: tuple[int, int]) -> None:
    read, write = ends
    os.write(write, b"\0")
    with descriptors_limited(1025):
        high = os.dup2(read, 1024)
    try:
        assert not FrameReader(high, lambda _: None).comes_at_once()
    finally:
        os.close(high)


@pytest.mark.parametrize(("pieces", "reads"), [([2**16] * 6, 1), ([2**16] * 20, 2), ([2**16, 2**10, 2**16], 2)])
def test_a_large_payload_is_taken_in_one_go_while_much_of_it_comes(
    ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch, pieces: list[int], reads: int
) -> None:
    read, write = ends
    data = memoryview(frames.LENGTH.pack(sum(pieces) - frames.LENGTH.size) + bytes(sum(pieces) - frames.LENGTH.size))
    left = iter(pieces)

    def say(_reader: FrameReader | None = None) -> bool:
        nonlocal data
        size = next(left, 0)
        data = data[os.write(write, data[:size]) :]
        return size > 0

    monkeypatch.setattr(FrameReader, "comes_at_once", say)
    taken = list[int]()
    reader = FrameReader(read, lambda payload: taken.append(len(payload)))
    say()
    reader.read()
    for number in range(1, reads):
        assert (number, taken) == (number, [])
        say()
        reader.read()
    assert taken == [sum(pieces) - frames.LENGTH.size]


def test_nothing_is_kept_of_a_payload_that_is_larger_than_most(ends: tuple[int, int]) -> None:
    read, write = ends
    size, taken = 2**22, list[int]()
    reader = FrameReader(read, lambda payload: taken.append(len(payload)))
    os.set_blocking(read, True)
    frame = frames.LENGTH.pack(size) + bytes(size)
    threading.Thread(target=lambda: os.write(write, frame)).start()
    tracemalloc.start()
    while not taken:
        reader.read()
    gc.collect()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken == [size]
    assert kept < size / 4 < size <= peak
