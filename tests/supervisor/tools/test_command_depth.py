"""The files that a command's changes pass, from the comparison of its overlay over a person's yes to the commit."""

import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
import trio

from supervisor.config.config_keys import Config
from supervisor.config.settings import Settings
from supervisor.pool.pools import Pools
from supervisor.pool.template_process import worker_command
from supervisor.session.child_specs import child_spec
from supervisor.tools.change_decisions import ChangeDecisions
from tests.supervisor.tools.test_execution import PROJECT, Site, yes

PROJECT_DIRECTORY: Final = f"{Path(__file__).parents[3]}/"
FOLDERS: Final = ("workers/changes", "workers/commit", "workers/shell", "workers/tree", "workers/treediff")
DECIDING: Final = ("supervisor/display", "supervisor/rules", "supervisor/tools", "supervisor/undo")
HOLDING: Final = "supervisor/pool/pending_proposal.py"
ELSEWHERE: Final = {"supervisor/tools/router.py", "supervisor/display/escape.py", "workers/tree/root.py"}
"""The caller, and how every text is escaped and every path is opened: no part of this way alone."""
FILES_AT_MOST: Final = 53

TELLING_WORKER: Final = """
import sys
from workers.__main__ import main
from workers.commit.upper_layer import LayerProposal, UpperLayer

passed, effects, commit = set(), UpperLayer.effects, LayerProposal.commit

def watch(frame, event, _argument):
    if event == "call":
        passed.add(frame.f_code.co_filename)

def watched_effects(*given):
    sys.setprofile(watch)
    return effects(*given)

def telling_commit(proposal):
    result = commit(proposal)
    sys.setprofile(None)
    return result._replace(note="\\n".join(sorted(passed)))

UpperLayer.effects, LayerProposal.commit = watched_effects, telling_commit
main()
"""
"""A worker that tells, as the note of a command's result, which files its changes passed."""


async def test_a_reader_follows_a_command_from_its_overlay_to_its_commit_through_few_files(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    for folder in (root, home, root / "copies"):
        folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (root / name).write_text(name)
    settings = Settings(Config(), tmp_path / "config.toml", home)
    profile = replace(PROJECT, root=str(root))
    command = worker_command(TELLING_WORKER)
    pools = Pools(
        str(root), lambda category: replace(child_spec(settings, profile, category), command=command), nursery
    )
    passed: set[str] = set()
    decide = ChangeDecisions.decide

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            passed.add(frame.f_code.co_filename)

    async def watched(*given: Any) -> Any:
        sys.setprofile(watch)
        return await decide(*given)

    monkeypatch.setattr(ChangeDecisions, "decide", watched)
    site = Site(root, home, pools)
    try:
        ended = await site.run(site.router(say=yes), "cp", "a.txt", "b.txt", "copies")
    finally:
        sys.setprofile(None)
    await pools.close()
    assert (ended.ok, (root / "copies" / "b.txt").read_text()) == (True, "b.txt")
    files = {each.removeprefix(PROJECT_DIRECTORY) for each in (*ended.note.splitlines(), *passed)}
    way = sorted(each for each in files if each.startswith((*FOLDERS, *DECIDING, HOLDING)) and each not in ELSEWHERE)
    assert {HOLDING, "workers/commit/commit.py", "workers/treediff/comparison.py"} <= set(way)
    assert len(way) <= FILES_AT_MOST, "\n".join(way)
