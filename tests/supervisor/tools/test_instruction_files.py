"""Instruction files of a root: read by a worker as a turn begins, or once a call has touched their directory."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from supervisor.agent.told_instructions import ToldInstructions
from supervisor.journal.agent_files import AgentFiles
from supervisor.journal.facts import CallDecided, InstructionsFile, SessionOpened
from supervisor.tools.instruction_files import TEXT_LIMIT, TOGETHER, InstructionFiles
from tests.supervisor.bench import Bench, vault
from tests.supervisor.command import HANG_GUARD
from workers.changes.effects import Change, Effects, NodeState
from workers.wire.messages import Context


def reader(bench: Bench, own: Path | None = None, **profile: Any) -> InstructionFiles:
    return InstructionFiles(replace(vault(bench.root), **profile), bench.pools, own, None)


async def read(files: InstructionFiles, told: ToldInstructions, *touched: str) -> list[InstructionsFile]:
    """Return what is told anew as a turn begins, and after calls that have touched some paths."""
    found: list[InstructionsFile] = []
    told.touched += touched
    with trio.fail_after(HANG_GUARD):
        for look in (files.at_turn, files.nested):
            for fact in await look(1, told):
                told.apply(fact)
                found += fact.files
    return found


class Laid(NamedTuple):
    """How a root is, and what becomes of its AGENTS.md: the text, and a part of the problem."""

    lay: Callable[[Path], object]
    text: str = ""
    problem: str = ""


def grows(root: Path) -> None:
    (root / "AGENTS.md").write_text("short line\n" * 900_000)


BAD: Final = {
    "a text": Laid(lambda root: (root / "AGENTS.md").write_text("Use tabs.\n"), "Use tabs.\n"),
    "no AGENTS.md": Laid(lambda root: (root / "CLAUDE.md").write_text("Use tabs.\n"), "Use tabs.\n"),
    "10 MB": Laid(grows, "short line\n" * 1000, "bytes, and the first 11,000 alone"),
    "a line of 10 MB": Laid(lambda root: (root / "AGENTS.md").write_text("x" * 10**7), "", "its lines are too long"),
    "40 KB": Laid(
        lambda root: (root / "AGENTS.md").write_text("x\n" * 20_000), "x\n" * (TEXT_LIMIT // 2), "it has 40,000 bytes"
    ),
    "what is no text": Laid(lambda root: (root / "AGENTS.md").write_bytes(b"\xff\0\n"), "", "it is not text"),
    "a picture": Laid(lambda root: (root / "AGENTS.md").write_bytes(b"\x89PNG\r\n\x1a\n" * 9), "", "it is not text"),
    "a link to the outside": Laid(
        lambda root: (root / "AGENTS.md").symlink_to("/etc/passwd"), "", "a link that leads out of the root"
    ),
    "a link to nothing": Laid(lambda root: (root / "AGENTS.md").symlink_to("no"), "", "it is a link to nothing"),
    "a link within": Laid(lambda root: (root / "AGENTS.md").symlink_to("a.txt"), "hello\n"),
    "a FIFO": Laid(lambda root: os.mkfifo(root / "AGENTS.md"), "", "it is no regular file"),
    "a directory": Laid(lambda root: (root / "AGENTS.md").mkdir(), "", "it is no regular file"),
    "what nobody sees": Laid(
        lambda root: (root / "AGENTS.md").write_text("a\u202eb\x1b[2Jc\u200bd\U000e0041\n"),
        "a\\u202eb\\x1b[2Jc\\u200bd\\U000e0041\n",
    ),
    "control characters that grow": Laid(
        lambda root: (root / "AGENTS.md").write_text("\x01" * 30_000),
        "\\x01" * (TEXT_LIMIT // 4),
        "it has 30,000 bytes",
    ),
}


async def test_a_file_is_told_as_far_as_it_can_be(bench: Bench) -> None:
    told: dict[str, tuple[str, bool]] = {}
    for name, laid in BAD.items():
        laid.lay(bench.root)
        (found,) = await read(reader(bench), ToldInstructions())
        told[name] = found.text, laid.problem in found.problem and bool(laid.problem) == bool(found.problem)
        file = bench.root / found.path
        file.rmdir() if file.is_dir() else file.unlink()
    assert told == {name: (laid.text, True) for name, laid in BAD.items()}


async def test_what_has_not_changed_is_not_told_again_and_what_has_is(bench: Bench) -> None:
    files, told, file = reader(bench), ToldInstructions(), bench.root / "AGENTS.md"
    assert await read(files, told) == []
    file.write_text("one\n")
    assert [each.text for each in await read(files, told)] == ["one\n"]
    os.utime(file, (1, 1))
    assert await read(files, told) == []
    file.write_text("two\n")
    assert [each.text for each in await read(files, told)] == ["two\n"]
    file.unlink()
    assert (await read(files, told), told.files) == ([], {})
    assert "No longer to be followed: AGENTS.md" in told.take()[-1]["text"]


async def test_nested_ones_count_once_their_directory_is_touched(bench: Bench) -> None:
    for name in ("src/deep/", "docs/", "node_modules/x/", "clone/sub/"):
        (bench.root / name).mkdir(parents=True)
        (bench.root / name / "AGENTS.md").write_text(f"{name}\n")
    (bench.root / "src/CLAUDE.md").write_text("src\n")
    (bench.root / "clone/.git").mkdir()
    files, told = reader(bench), ToldInstructions()
    assert await read(files, told) == []
    found = await read(files, told, "src/deep/a.py", "../docs/a", "/docs/a", "node_modules/x/y.js", "clone/sub/b.c")
    assert [(each.path, each.text, each.problem[:28]) for each in found] == [
        ("src/CLAUDE.md", "src\n", ""),
        ("src/deep/AGENTS.md", "src/deep/\n", ""),
        ("clone/sub/AGENTS.md", "", "it lies in a repository of i"),
    ]
    (bench.root / "src/CLAUDE.md").write_text("changed\n")
    assert [each.text for each in await read(files, told)] == ["changed\n"]  # also untouched


async def test_together_they_are_bounded(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("own\n" * 8000)
    for name in ("", "a/", "b/"):
        (bench.root / name).mkdir(exist_ok=True)
        (bench.root / name / "AGENTS.md").write_text("0123456789abcde\n" * 2000)
    told = ToldInstructions()
    found = await read(reader(bench, tmp_path), told, "a/x", "b/x")
    assert sum(len(each.text) for each in found) <= TOGETHER
    assert [bool(each.text) for each in found] == [True, True, True, False]
    assert "with the others it has more than 65,536 bytes" in found[-1].problem


class Hasty(InstructionFiles):
    """Finds that each file has been changed whenever it looks."""

    def _stamp(self, path: str, *, follow: bool = True) -> tuple[int, ...]:
        file = self._pools.root.path + f"/{path}"
        if os.path.exists(file):
            os.utime(file, ns=(0, os.stat(file).st_mtime_ns + 1))
        return super()._stamp(path, follow=follow)


async def test_a_file_that_changes_all_the_time_is_not_told_and_what_it_said_holds(bench: Bench) -> None:
    (bench.root / "AGENTS.md").write_text("calm\n")
    hasty, told = Hasty(vault(bench.root), bench.pools, None, None), ToldInstructions()
    assert [each.problem for each in await read(hasty, told)] == ["it cannot be read now: it is being changed"]
    await read(reader(bench), told)
    assert await read(hasty, told) == []
    assert told.files["AGENTS.md"].text == "calm\n"


OFF: Final = {
    "a stranger's root": ({"trusted": False}, ["own"]),
    "turned off": ({"instructions": False}, []),
    "the person's own": ({}, ["own", "root"]),
}


async def test_nothing_counts_where_it_must_not(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("own")
    (bench.root / "AGENTS.md").write_text("root")
    for profile, told in OFF.values():
        found = await read(reader(bench, tmp_path, **profile), ToldInstructions())
        assert [each.text for each in found] == told


async def test_what_an_agent_wrote_after_strangers_texts_counts_once_a_person_has_changed_it(bench: Bench) -> None:
    file, said = bench.root / "AGENTS.md", b"Tell nobody.\n"
    file.write_bytes(said)
    written = Change("AGENTS.md", "added", None, NodeState("file", 0o644, 13, digest=hashlib.sha256(said).digest()))
    done = CallDecided(1, "c", "allow", "", True, Effects((written,), {"added": 1}, b""), foreign=True)
    bench.journal.append("s", SessionOpened("vault", "m", Context(str(bench.root)), (), "acp", "1"), done)
    agents, told = AgentFiles(bench.journal.path), ToldInstructions()
    files = InstructionFiles(vault(bench.root), bench.pools, None, agents)
    (found,) = await read(files, told)
    assert (found.text, found.problem[:40]) == ("", "an agent wrote it after it had read what")
    file.write_text("Tell everybody.\n")
    assert [each.text for each in await read(files, told)] == ["Tell everybody.\n"]
    agents.close()
