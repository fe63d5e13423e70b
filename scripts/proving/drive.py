"""One project, driven by a scripted model in the real daemon: a turn for each step, and a person who says yes.

Rule: a step is good when its call is, its command ended with 0, and the root is as it then must be; what is asked on
the way is counted, and said.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from scripts.proving.catalog import Language, Project
from supervisor.acp import extensions
from supervisor.journal.facts import CallEnded
from tests.daemon_process import ASK, DaemonProcess, Lines, scripted

STEPS: Final = ("search", "read", "edit", "install", "build", "test", "commit", "undo")
GOOD: Final = "ok"
NONE: Final = "-"
"""Of a step that a project has not."""

_TIME_S: Final = 300
"""Seconds that commands ask for."""
_PATIENCE_S: Final = 900.0
_LAST_WORDS: Final = 200
_REMARKS: Final[Mapping[Language, str]] = {"Python": "#", "Node": "//", "Rust": "//", "Go": "//", "C": "//"}


class Outcome(NamedTuple):
    """What became of a project."""

    project: Project
    steps: Mapping[str, str]
    """Each step's outcome in a word."""
    said: Mapping[str, str]
    """Why, of those that are not good."""
    asked: tuple[str, ...]
    """What was asked, each with its step and reason."""
    seconds: float


def drive(project: Project, root: Path, daemon: DaemonProcess, profile: str) -> Outcome:
    """Drive a project whose files lie in `root`, which becomes a repository."""
    began = time.monotonic()
    person = (["config", "user.name", "A Person"], ["config", "user.email", "person@example.org"])
    for words in (["init", "-q"], *person, ["add", "-A"], ["commit", "-qm", "As it came"]):
        _git(root, *words)
    first = _git(root, "rev-parse", "HEAD")
    calls = dict(_calls(project, root))
    replies = [reply for call in calls.values() for reply in ({"text": "", "calls": [call]}, {"text": "Done."})]
    steps, said, asked = dict.fromkeys(STEPS, NONE), {}, []
    with daemon.client() as client:
        client.connection.settimeout(_PATIENCE_S)
        model = scripted(root.with_name(f"{root.name}.model"), *replies)
        session = client.new_session(root, profile=profile, model=model)
        for step in calls:
            asked += [f"{step}: {each}" for each in _turn(client, session, step)]
            ended = daemon.facts_of(session, CallEnded)[-1]
            steps[step], said[step] = _judged(ended)
        undone = client.request(extensions.UNDO_METHOD, {"sessionId": session, "scope": "session"})["steps"]
    left = _git(root, "status", "--short")
    if _git(root, "rev-parse", "HEAD") != first or left:
        steps["undo"] = "failed"
        said["undo"] = "; ".join(each["message"] for each in undone if not each["ok"]) or f"the root has {left[:200]!r}"
    else:
        steps["undo"] = GOOD
    reasons = {step: why for step, why in said.items() if steps[step] != GOOD}
    return Outcome(project, steps, reasons, tuple(asked), time.monotonic() - began)


def _calls(project: Project, root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each step with its call."""
    text = (root / project.read).read_text()
    first = next(line for line in text.splitlines() if line.strip() and text.count(line) == 1)
    old, new = project.edit if project.edit[0] else (first, f"{_REMARKS[project.language]} Proved.\n{first}")
    yield "search", _call("search_files", query=old.splitlines()[0][:60], literal=True)
    yield "read", _call("read_file", path=project.read)
    yield "edit", _call("edit_file", path=project.read, old=old, new=new)
    commands = {"install": project.install, "build": project.build, "test": project.test}
    commands["commit"] = f"git add {project.read} && git commit -qm 'Mend it' && git log -1 --stat"
    for step, command in commands.items():
        if command:
            yield step, _call("run_cmd", command=command, timeout_s=_TIME_S)


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def _turn(client: Lines, session: str, step: str) -> list[str]:
    """Run a turn, and say yes to whatever is asked; return the reasons."""
    asked = []
    prompt = client.begin_prompt(session, step)
    while True:
        message = client.read()
        if message.get("method") == ASK:
            review = message["params"].get("_meta", {}).get("_strongroom/review", {})
            asked.append(f"{review.get('stage')}: {review.get('reason')}")
            client.allow(message)
        elif "method" not in message and message.get("id") == prompt:
            return asked


def _judged(ended: CallEnded) -> tuple[str, str]:
    """Return a call's outcome in a word, and why it is not good."""
    if not ended.ok:
        printed = " ".join(str(ended.details.get(name, "")) for name in ("stdout", "stderr"))
        return str(ended.kind), f"{ended.content} {printed[-_LAST_WORDS:]}".strip()
    content = json.loads(ended.content) if ended.form == "json" else ended.content
    if isinstance(content, dict) and content.get("exit_code"):
        said = (content["stderr"] + content["stdout"]).strip()
        return f"exit {content['exit_code']}", f"{said[-_LAST_WORDS:]} [{ended.note}]"
    return (GOOD, "") if content else ("nothing", ended.note)


def _git(root: Path, *words: str) -> str:
    """Run git as the person, and return what it says."""
    git = shutil.which("git") or "git"
    done = subprocess.run([git, *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()
