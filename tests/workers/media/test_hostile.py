"""Hostile files against the real worker: each is an answer, none takes more than its share, and the next call works."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.media_files import HOSTILE, TRYING, animation, cut, mutated, pdf, photo, picture
from tests.workers.media.conftest import LIMITS, MediaWorker
from workers.wire import messages

DECLINED = {"not_text", "too_large", "timeout", "resource_limit"}

GOOD: dict[str, tuple[str, Callable[[], bytes]]] = {
    "PNG": ("image/png", lambda: picture("PNG", (90, 60), "RGBA")),
    "palette": ("image/png", lambda: picture("PNG", (90, 60), "P")),
    "JPEG": ("image/jpeg", lambda: photo(size=(90, 60))),
    "progressive": ("image/jpeg", lambda: picture("JPEG", (90, 60), progressive=True)),
    "GIF": ("image/gif", lambda: animation(3)),
    "WebP": ("image/webp", lambda: picture("WEBP", (90, 60))),
    "lossless": ("image/webp", lambda: picture("WEBP", (90, 60), "RGBA", lossless=True)),
    "PDF": ("application/pdf", lambda: pdf("One page.", "And another.")),
}


def peak(pid: int) -> int:
    """Return the most memory that a process has held, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) * 1024


def works(media: MediaWorker) -> bool:
    return bool(media.shown(picture(), "image/png").told["width"] == 64)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_declined_with_a_kind(name: str, media: MediaWorker) -> None:
    media_type, made = HOSTILE[name]
    declined = media.declined(made(), media_type)
    assert declined.kind in DECLINED
    assert declined.message
    assert peak(media.worker.process.pid) < LIMITS.memory_mb * 2**20
    assert works(media)


@pytest.mark.parametrize("name", TRYING)
def test_a_trying_file_takes_its_share_of_time_and_memory_alone(name: str, media: MediaWorker) -> None:
    media_type, made = TRYING[name]
    answer = media.convert(made(), media_type)
    assert isinstance(answer, messages.Done) or (isinstance(answer, messages.Failed) and answer.kind in DECLINED)
    assert peak(media.worker.process.pid) < LIMITS.memory_mb * 2**20
    assert works(media)


@pytest.mark.parametrize("name", GOOD)
def test_a_file_that_is_cut_anywhere_is_declined_or_shown(name: str, media: MediaWorker) -> None:
    media_type, made = GOOD[name]
    whole = made()
    assert isinstance(media.convert(whole, media_type), messages.Done)
    answers = [media.convert(part, media_type) for part in cut(whole, 1 if len(whole) < 600 else 100)]
    assert all(isinstance(each, messages.Done) or (each and each.kind == "not_text") for each in answers)
    assert sum(isinstance(each, messages.Failed) for each in answers) > len(answers) // 2
    assert works(media)


@pytest.mark.parametrize("name", GOOD)
def test_a_file_that_chance_has_changed_is_declined_or_shown(name: str, media: MediaWorker) -> None:
    media_type, made = GOOD[name]
    before = media.started
    answers = [media.convert(each, media_type) for each in mutated(made(), 400, 1)]
    assert all(isinstance(each, messages.Done) or (each and each.kind in DECLINED) for each in answers)
    assert any(isinstance(each, messages.Failed) for each in answers)
    assert media.started <= max(before, 1), "the worker has ended"
    assert peak(media.worker.process.pid) < LIMITS.memory_mb * 2**20
    assert works(media)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a GIF that says it is a PNG", "It claims to be a PNG image, and its content is a GIF image."),
        ("HTML that says it is a PNG", "It claims to be a PNG image, and its content is something else."),
        ("an encrypted PDF", "This PDF document is encrypted. Use a copy without a password."),
        ("a PDF without a page", "This PDF document has no page."),
        ("a progressive JPEG of 144 megapixels", "Scale it down first, or save it as a baseline JPEG."),
        ("a PNG one pixel wide", "This PNG image takes too much memory to decode. Use a smaller or simpler one."),
        ("a PNG of the largest size", "at most 21 million are decoded. Scale it down first."),
    ],
)
def test_what_is_declined_is_told_why(name: str, says: str, media: MediaWorker) -> None:
    media_type, made = HOSTILE[name]
    assert media.declined(made(), media_type).message.endswith(says)
