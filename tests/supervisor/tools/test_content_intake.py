"""Images and documents on their way into a session: what is believed of a worker, and how long is waited for it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
import trio.testing

from supervisor.categories.media import MediaConfig
from supervisor.journal.contents import ContentStore
from supervisor.tools.content_intake import ContentIntake, ContentRefused
from tests.media_files import pdf, picture
from workers.wire.messages import Done

if TYPE_CHECKING:
    from supervisor.pool.pools import Pools

MADE = picture("JPEG")


class MediaPool:
    """Two media workers that say the same of everything."""

    def __init__(self, told: dict[str, Any], data: bytes) -> None:
        self.turns = trio.CapacityLimiter(2)
        self.most = 0
        self._answer = Done(1, json.dumps(told), "json", data=data)
        self._calls = 0

    def pool(self, _category: str) -> "MediaPool":
        return self

    async def call(self, _tool: str, _arguments: bytes, **_more: Any) -> Done:
        self._calls += 1
        self.most = max(self.most, self._calls)
        await trio.testing.wait_all_tasks_blocked()
        self._calls -= 1
        return self._answer


def intake(pool: MediaPool, folder: Path) -> ContentIntake:
    return ContentIntake(cast("Pools", pool), ContentStore(folder / "content", MediaConfig()), "s")


async def test_the_time_of_one_is_not_spent_waiting_for_others(tmp_path: Path) -> None:
    pool = MediaPool({"media_type": "image/jpeg", "width": 1, "height": 1}, MADE)
    takes = intake(pool, tmp_path)
    async with trio.open_nursery() as nursery:
        for _ in range(9):
            nursery.start_soon(takes.take, picture(), "image/png", "a.png")
    assert pool.most == 2


@pytest.mark.parametrize(
    ("claimed", "told", "data"),
    [
        ("image/png", {"media_type": "application/pdf", "pages": 1}, b"text"),
        ("image/png", {"media_type": "application/pdf", "pages": 1}, pdf("x")),
        ("image/png", {"media_type": "image/png"}, MADE),
        ("image/png", {"media_type": "image/png"}, b"<html>"),
        ("image/png", {"media_type": "image/gif"}, b"GIF89a"),
        ("application/pdf", {"media_type": "image/jpeg"}, MADE),
        ("application/pdf", {"media_type": "application/pdf", "pages": -1000}, b""),
        ("image/png", {"media_type": "image/jpeg", "note": "x" * 201}, MADE),
        ("image/png", {}, MADE),
    ],
)
async def test_a_worker_that_lies_is_not_believed(
    claimed: str, told: dict[str, Any], data: bytes, tmp_path: Path
) -> None:
    with pytest.raises(ContentRefused) as refused:
        await intake(MediaPool(told, data), tmp_path).take(picture(), claimed, "a")
    assert refused.value.kind == "internal"
    assert not (tmp_path / "content").exists()
