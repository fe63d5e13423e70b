"""Every command in README.md and MANUAL.md, typed as it stands there, one after the other, into a real shell."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from supervisor.journal.facts import CallEnded
from tests.messages_server import MessagesServer, reply
from tests.supervisor.command import CODE, Strongroom

BLOCK: Final = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
PROGRAMS: Final = ("strongroom", "cd ", "scripts/", "echo", "printf", "pip", "export", "mkdir", "systemctl")

ELSEWHERE: Final = {
    "pip install .": "tests/test_package.py",
    "pip install '.[tui]'": "as the one above; .venv has what it adds",
    "strongroom tui --root ~/notes/vault": "tests/supervisor/clients/tui/test_start_tui.py, on a terminal",
    "strongroom tui --continue --theme light": "the same",
    "scripts/demo": "tests/story/test_demo.py",
    "scripts/test": "this is it",
    "systemctl --user enable --now strongroom": "tests/supervisor/daemon/process/test_systemd_unit.py",
    "export ANTHROPIC_API_KEY=...": "here, of an example",
    "strongroom login": "tests/supervisor/clients/test_login.py, on a terminal",
    "strongroom rules revoke ID": "tests/supervisor/reports/test_rules_report.py, where there is a rule",
}
"""Commands that are not run here, and who does."""

FAILS: Final = ("""'{"path": "../.ssh/id_rsa"}' --root ~/notes/vault""",)
"""What is to fail, because that is what the document says of it."""


def commands(document: str) -> list[str]:
    """Return the commands of a document that are run here, without what is said beside them."""
    text = (CODE / document).read_text("utf-8")
    lines = [line[4:] for block in BLOCK.findall(text) for line in block.splitlines()]
    typed = [re.sub(r"\s{2,}#.*$", "", line).strip() for line in lines]
    return [line for line in typed if line.startswith(PROGRAMS) and line not in ELSEWHERE]


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer([reply("Sixteen sacks of compost.")], repeat_last=True) as started:
        yield started


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """A person's home, with what the documents take for granted beside the program's own directory."""
    (tmp_path / "repos/elixir/phoenix").mkdir(parents=True)
    shutil.copytree(CODE / "vault", tmp_path / "vault", ignore=shutil.ignore_patterns("demo"))
    shutil.copytree(CODE / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/strongroom").symlink_to(Path(sys.executable).with_name("strongroom"))
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "1", "prompt": "How much compost?"}) + "\n")
    (tmp_path / "items.jsonl").write_text(json.dumps({"id": "1", "prompt": "read notes/idea.md"}) + "\n")
    (tmp_path / "calls.jsonl").write_text(
        json.dumps({"id": "1", "tool": "write_file", "arguments": {"path": "new.md", "content": "x"}}) + "\n"
    )
    (tmp_path / "rules.toml").write_text('[[rules]]\nprograms = ["touch"]\nwrites = ["**"]\ndecision = "allow"\n')
    return tmp_path


def newest(person: Path) -> tuple[str, str]:
    """Return the newest session with a call, and that call."""
    entries = Strongroom(person / "strongroom-home", person).entries
    return [(entry.session, entry.fact.call) for entry in entries if isinstance(entry.fact, CallEnded)][-1]


def test_every_command_does_what_is_said(person: Path, server: MessagesServer) -> None:
    environment = {
        "PATH": f"{person / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(CODE),
        "HOME": str(person),
        "STRONGROOM_HOME": str(person / "strongroom-home"),
        "ANTHROPIC_API_KEY": "sk-ant-example",
        "ANTHROPIC_BASE_URL": server.url,
        "LANG": "C.UTF-8",
    }

    def typed(command: str) -> str:
        """Type one command; return what was said if it did not end as the document says."""
        shell = ["bash", "-c", command]
        done = subprocess.run(
            shell, env=environment, cwd=person, input="y\n", capture_output=True, text=True, timeout=60, check=False
        )
        failed = done.returncode != 0
        return f"{command}: {done.returncode} {done.stderr[-500:]}" if failed != command.endswith(FAILS) else ""

    documents = [commands("README.md"), commands("MANUAL.md")]
    assert min(map(len, documents)) > 5
    wrong = [typed("strongroom init ~/notes")]
    for command in dict.fromkeys(chain(*documents)):  # what stands in both does the same in both
        session, call = newest(person) if ("a1b2c3" in command or "toolu_01A2B3" in command) else ("", "")
        wrong.append(typed(command.replace("a1b2c3", session).replace("toolu_01A2B3", f"{call} --session {session}")))
    wrong.append(typed("strongroom daemon --stop"))
    assert not any(wrong), "\n".join(filter(None, wrong))
