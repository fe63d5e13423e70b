"""A call that writes, on disks that are full to a page: the root's, and that of the journal and of what is kept.

The disks are small file systems of a namespace of their own. For each number of free pages the call has a typed end,
the root holds the old content or the new one, and the journal is whole; as soon as there is space the next call is
answered.
"""

import json
import subprocess
import sys
from typing import Any, Final

import pytest

from tests.supervisor.command import CODE, HANG_GUARD

PROGRAM: Final = """
import json, os, subprocess, sys
from pathlib import Path

import msgspec, trio

from supervisor.categories.restore import UndoConfig
from supervisor.config.settings import Config, Settings
from supervisor.session.child_specs import child_spec
from supervisor.errors import JournalError
from supervisor.journal.journal import open_journal
from supervisor.undo.packs import PackStore
from supervisor.pool.pools import Pools
from supervisor.config.profiles import Profile
from supervisor.tools.services import ChangeServices
from supervisor.tools.router import Router
from tests.supervisor.recording_context import RecordingContext

PAGE, PAGES = 4096, 24
folder = Path(sys.argv[1])
root, home = folder / "root", folder / "home"
for disk in (root, home):
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", str(disk)], check=True)
text = {each: each * 12000 for each in "ab"}
(root / "a.md").write_text(text["a"])


class RecordedCall(RecordingContext):
    def __init__(self, journal):
        super().__init__()
        self.journal = journal

    async def record(self, *facts):
        self.journal.append("s", *facts)
        await super().record(*facts)

    def committed(self):
        return any(fact.committed for fact in self.decided)


async def call(router, journal, new):
    context = RecordedCall(journal)
    started = router.judge(1, os.urandom(4).hex(), "write_file", json.dumps({"path": "a.md", "content": new}))
    try:
        journal.append("s", started)
        ended = await router.run(started, context)
        journal.append("s", ended)
        return "ok" if ended.ok else ended.kind, context.committed()
    except JournalError as error:
        return error.kind, context.committed()


async def main():
    profile = Profile("full", str(root), ("write_file",))
    settings = Settings(Config(), folder / "config.toml", home)
    with open_journal(home / "journal.db") as journal:
        async with trio.open_nursery() as nursery:
            pools = Pools(str(root), lambda category: child_spec(settings, profile, category), nursery)
            router = Router(profile, pools, None, "s", ChangeServices(packs=PackStore(home / "kept", UndoConfig())))
            # The home while the journal's log is short, and has no space ahead; and once it is long.
            for disk, most in ((home, PAGES), (home, 4), (root, PAGES)):
                for pages in range(most):
                    old = (root / "a.md").read_text()
                    new = text["b" if old == text["a"] else "a"]
                    for pack in filter(Path.is_file, (home / "kept").glob("*")):
                        pack.unlink()
                    free = os.statvfs(disk)
                    with (disk / "ballast").open("wb") as ballast:
                        ballast.write(bytes(PAGE * max(0, free.f_bavail - pages)))
                    kind, decided = await call(router, journal, new)
                    (disk / "ballast").unlink()
                    now = (root / "a.md").read_text()
                    row = {"disk": disk.name, "pages": pages, "kind": kind, "decided": decided}
                    row["root"] = "old" if now == old else "new" if now == new else "neither"
                    row["names"] = sorted(os.listdir(root))
                    row["journal"] = journal.verify().problem
                    row["next"], _ = await call(router, journal, text["b" if now == text["a"] else "a"])
                    print(json.dumps(row), flush=True)
            await pools.close()


trio.run(main)
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What became of the call for each number of free pages, on each of the two disks."""
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", PROGRAM]
    folder = str(tmp_path_factory.mktemp("disk"))
    done = subprocess.run([*command, folder], cwd=CODE, capture_output=True, text=True, timeout=HANG_GUARD, check=False)
    if done.returncode and "unshare" in done.stderr:
        pytest.skip("needs a namespace of its own")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_on_a_full_disk_each_call_has_a_typed_end(rows: list[dict[str, Any]]) -> None:
    ends = {disk: {row["kind"] for row in rows if row["disk"] == disk} for disk in ("root", "home")}
    assert ends == {"root": {"disk_full", "ok"}, "home": {"journal_io", "disk_full", "ok"}}


def test_on_a_full_disk_nothing_is_lost_and_nothing_half_written(rows: list[dict[str, Any]]) -> None:
    assert {row["root"] for row in rows if row["decided"]} <= {"old", "new"}
    assert {row["root"] for row in rows if not row["decided"]} == {"old"}
    assert {row["root"] for row in rows if row["kind"] == "ok"} == {"new"}
    assert {row["root"] for row in rows if row["kind"] == "disk_full"} == {"old"}
    assert {(*row["names"], row["journal"]) for row in rows} == {("a.md", "")}


def test_the_next_call_is_answered_as_soon_as_there_is_space_again(rows: list[dict[str, Any]]) -> None:
    assert {row["next"] for row in rows} == {"ok"}
