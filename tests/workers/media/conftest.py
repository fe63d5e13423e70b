"""A media worker, as the supervisor starts it, and what it makes of content."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from supervisor.categories.media import ROW
from tests.raw_worker import RawWorker, open_worker
from workers.wire import messages

LIMITS = messages.Limits(**{name: getattr(ROW.limits, name) for name in messages.Limits.__struct_fields__})


class Shown(NamedTuple):
    """What came back."""

    told: dict[str, Any]
    data: bytes


class MediaWorker:
    """A worker that is started anew when it has ended."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._opened: Any = None
        self._worker: RawWorker | None = None
        self.started = 0

    @property
    def worker(self) -> RawWorker:
        if self._worker is None or self._worker.process.poll() is not None:
            self.close()
            self._opened = open_worker(self._root, category="media", limits=LIMITS, call_s=ROW.limits.call_s)
            self._worker = self._opened.__enter__()
            assert isinstance(self._worker.ready, messages.Ready), self._worker.ready
            self.started += 1
        return self._worker

    def close(self) -> None:
        if self._opened is not None:
            self._opened.__exit__(None, None, None)
            self._opened = self._worker = None

    def convert(self, data: bytes, media_type: str, **more: Any) -> messages.Done | messages.Failed | None:
        """Return the answer; None where the worker has ended instead."""
        answer = self.worker.propose("convert_media", {"media_type": media_type, **more}, content=data)
        assert answer is None or isinstance(answer, messages.Done | messages.Failed), answer
        return answer

    def shown(self, data: bytes, media_type: str, **more: Any) -> Shown:
        answer = self.convert(data, media_type, **more)
        assert isinstance(answer, messages.Done), answer
        return Shown(msgspec.json.decode(answer.content), answer.data)

    def declined(self, data: bytes, media_type: str) -> messages.Failed:
        answer = self.convert(data, media_type)
        assert isinstance(answer, messages.Failed), answer
        return answer


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MediaWorker]:
    worker = MediaWorker(tmp_path_factory.mktemp("media"))
    yield worker
    worker.close()
