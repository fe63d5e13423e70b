"""Name and e-mail address of the person's settings of git, as git itself would print them."""

import os
import subprocess
from pathlib import Path

import pytest

from supervisor.categories.git_identity import git_identity

SETTINGS = [
    "[user]\n\tname = A B\n\temail = a@b\n",
    "[user]\nname=A\nemail=b@c",
    "[user] name = A\n",
    '[user]\n\tname = "A  B " # c\n\temail = a@b ; d\n',
    '[user]\n\tname = A "B # C" D   \n',
    '[user]\n\tname = A\\tB\\\\C\\"D\n',
    "[user]\n\tname = A \\\n   B\n\temail = x\n",
    "[USER]\n\tNAME = A\n[user]\n\tEmail = E\n",
    "# [user]\n; name = x\n[user] # y\n\tname = A\n\tname = B\n",
    '[user "other"]\n\tname = wrong\n[user]\n\tname = right\n',
    "[users]\n\tname = wrong\n[core]\n\tname = wrong\n",
    "[user.x]\n\tname = wrong\n",
    '[a "]\\"[user]"]\n\tname = wrong\n',
    "[user]\n\tname\n\temail =\n",
    "\ufeff[user]\r\n\tname = A\r\n\temail = e\r\n",
    "[user]\n\tname = Zoë 漢\n",
    "[include]\n\tpath = INCLUDED\n[user]\n\temail = e\n",
    "[user]\n\tsigningkey = k\n\tname = A\n\tuseConfigOnly = true\n\temail = e",
    "",
]


@pytest.mark.parametrize("text", SETTINGS)
def test_it_reads_what_git_reads(text: str, tmp_path: Path) -> None:
    (tmp_path / "included").write_text("[user]\n\tname = included\n")
    (tmp_path / ".gitconfig").write_text(text.replace("INCLUDED", str(tmp_path / "included")), newline="")
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}

    def git(key: str) -> str:
        command = ["git", "config", "--global", "--get", key]
        done = subprocess.run(
            command, cwd="/", env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout.removesuffix("\n")

    assert git_identity(str(tmp_path)) == (git("user.name"), git("user.email"))


def test_the_home_wins_over_the_configuration_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place, text in ((".config/git/config", "name = X\nemail = x"), ("xdg/git/config", "name = Y\nemail = y")):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(f"[user]\n{text}")
    assert git_identity(str(tmp_path)) == ("X", "x")
    assert git_identity(str(tmp_path), str(tmp_path / "xdg")) == ("Y", "y")
    assert git_identity(str(tmp_path), "xdg") == ("X", "x"), "a relative one is none (XDG Base Directory Specification)"
    (tmp_path / ".gitconfig").write_text("[user]\nname = H")
    assert git_identity(str(tmp_path)) == ("H", "x")


@pytest.mark.parametrize(
    "text", ["[user\nname = x", '[user]\nname = "x', "\0\0[user]", "[user]\n= x\nname = y", "]" * 9999]
)
def test_what_git_would_not_read_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text(text)
    assert git_identity(str(tmp_path))[1] == ""


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitconfig")
    assert git_identity(str(tmp_path)) == ("", "")
