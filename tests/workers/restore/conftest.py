"""A tree on which calls are made and taken back: rehearsed commands, packs of the real store, one confined worker."""

import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import structs

from supervisor.categories.restore import UndoConfig
from supervisor.undo.packs import PackStore
from tests.raw_worker import RawWorker, open_worker, receive, send
from tests.workers.commit.conftest import copy_of, template, without_a_disk
from tests.workers.commit.namespaces import Rehearsing, open_rehearsing
from tests.workers.commit.snapshot import Snapshot, lasting, snapshot
from workers.restore.restore_inputs import RestoreInputs
from workers.wire import frames, messages
from workers.wire.pack_format import HEADER, PackedName, PackReader

__all__ = ["template"]

EACH: Final = 2**23
"""Bytes of a file above which its content is not kept."""

Damage = Callable[[list[bytes]], list[bytes]]
"""Makes other frames of a pack's, the last of which is its end."""


class House:
    """One root, what is kept of the calls on it, and a worker that restores."""

    def __init__(self, base: Path, template: Path, rehearsing: Rehearsing, worker: RawWorker) -> None:
        self.tree = base / "root"
        self.kept = base / "kept"
        self.worker = worker
        self._template = template
        self._rehearsing = rehearsing
        self._store = PackStore(self.kept, UndoConfig())
        self.last = 2**20
        """The id of the last call."""

    def renew(self) -> None:
        """Make the tree what it is at the beginning of each test. The root itself stays, for the worker has it."""
        subprocess.run(["/bin/chmod", "-R", "u+rwx", str(self.tree)], check=True)
        for each in os.scandir(self.tree):
            shutil.rmtree(each) if each.is_dir(follow_symlinks=False) else os.unlink(each)
        for name in os.listxattr(self.tree):
            os.removexattr(self.tree, name)
        subprocess.run(["/bin/cp", "-a", f"{self._template}/.", str(self.tree)], check=True)

    def sh(self, script: str) -> None:
        """Change the tree, without anybody who keeps anything."""
        subprocess.run(["/bin/bash", "-ec", script], cwd=self.tree, check=True)

    def do(self, script: str, each: int = EACH) -> str:
        """Make a call that runs a script; return the pack that was kept of it."""
        self._rehearsing.begin(self.tree)
        self._rehearsing.ask("run", f"set -e\n{script}")
        with self._store.begin("session", "call") as pack:
            for name, content in self._rehearsing.ask("originals", each, 2**26):
                pack.add(messages.Original(1, **{**name._asdict(), "attributes": dict(name.attributes)}))
                for at in range(0, len(content), messages.PIECE):
                    pack.add(messages.Piece(1, content[at : at + messages.PIECE]))
            kept = pack.finish()
        self._rehearsing.commit()
        return kept

    def put(self, *parts: messages.Original | messages.Piece, damage: Damage | None = None) -> str:
        """Make a pack of parts that may be anything; it is whole, if no damage is done to its frames then."""
        with self._store.begin("session", "forged") as forged:
            for part in parts:
                forged.add(part)
            pack = forged.finish()
        if damage is not None:
            (self.kept / pack).write_bytes(HEADER + b"".join(damage(self.frames(pack))))
        return pack

    def frames(self, pack: str) -> list[bytes]:
        """Return the frames of a pack, the last of which is its end."""
        file = io.BytesIO((self.kept / pack).read_bytes().removeprefix(HEADER))
        return [frames.framed(payload) for payload in frames.payloads(file.read)]

    def parts(self, pack: str) -> list[messages.Original | messages.Piece]:
        """Return what is in a pack, as a worker sends it."""
        with open(self.kept / pack, "rb") as file:
            return [
                messages.Original(1, **structs.asdict(part))
                if isinstance(part, PackedName)
                else messages.Piece(1, part.data)
                for part in PackReader(file.fileno()).parts()
            ]

    def propose(self, pack: str, *, force: bool = False) -> messages.Up | None:
        """Ask for an undo; return what the worker proposes, or why it does not."""
        self.last += 1
        call = messages.Call(self.last, "undo", msgspec.json.encode({"pack": pack, "force": force}))
        send(self.worker.process, call)
        return receive(self.worker.process)

    def undo(self, pack: str, *, force: bool = False) -> messages.Done | messages.Failed:
        """Undo a call."""
        answer = self.propose(pack, force=force)
        if isinstance(answer, messages.Proposed):
            answer = self.worker.decide(answer, commit=True)
        assert isinstance(answer, messages.Done | messages.Failed), answer
        return answer

    def done(self, pack: str, *, force: bool = False) -> str:
        """Undo a call, which succeeds; return what is said."""
        answer = self.undo(pack, force=force)
        assert isinstance(answer, messages.Done), answer
        return answer.content

    def undo_and_keep(self, pack: str) -> tuple[str, str]:
        """Undo a call; return the pack that was kept of the undo, and what it said."""
        proposed = self.propose(pack)
        kept = self.keep(self.worker, proposed)
        done = self.worker.decide(proposed, commit=True)
        assert isinstance(done, messages.Done), done
        return kept, done.content

    def keep(self, worker: RawWorker, proposed: messages.Up | None) -> str:
        """Keep what a worker's proposal would replace; return the pack."""
        assert isinstance(proposed, messages.Proposed), proposed
        send(worker.process, messages.Keep(proposed.id, EACH, 2**26))
        with self._store.begin("session", "kept") as kept:
            while isinstance(part := receive(worker.process), messages.Original | messages.Piece):
                kept.add(part)
            assert isinstance(part, messages.Kept), part
            return kept.finish()

    def look(self) -> Snapshot:
        """Return everything about the tree, but which names are one file: a write to one of them ends that."""
        return {path: entry._replace(same_as=b"") for path, entry in lasting(snapshot(self.tree)).items()}


def inputs(packs: Path) -> RestoreInputs:
    return RestoreInputs(str(packs), str(packs / "scratch"))


@pytest.fixture(scope="session")
def shared(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """On a file system without a disk where there is one: nobody waits for syncs there."""
    with ExitStack() as stack:
        base = stack.enter_context(without_a_disk(tmp_path_factory.mktemp("house")))
        copy_of(template, base / "root")
        rehearsing = stack.enter_context(open_rehearsing(tmp_path_factory.mktemp("scratch")))
        worker = open_worker(base / "root", category="restore", inputs=inputs(base / "kept"))
        house = House(base, template, rehearsing, stack.enter_context(worker))
        stack.callback(house.renew)
        assert house.worker.report
        yield house


@pytest.fixture
def house(shared: House) -> Iterator[House]:
    """The shared house, as new; nothing is left of an undo when a test has ended."""
    shared.renew()
    yield shared
    let_go(shared.worker)
    assert os.listdir(shared.kept / "scratch") == []


def let_go(worker: RawWorker) -> None:
    """Wait until a worker has let go of what it held for its last answer: then it answers another call."""
    send(worker.process, messages.Call(1, "none", b"{}"))
    assert isinstance(receive(worker.process), messages.Failed)


def failed(answer: Any, kind: str) -> str:
    """Return why it failed, which must be for a reason of this `kind`."""
    assert isinstance(answer, messages.Failed), answer
    assert answer.kind == kind, answer
    return answer.message
