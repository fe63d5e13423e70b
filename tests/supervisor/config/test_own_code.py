"""A root that is written never holds the code that runs, nor lies in it: who writes there is out of the room."""

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

import msgspec
import pytest

import supervisor
import workers
from supervisor.config.profiles import resolve
from supervisor.config.settings import load
from supervisor.errors import ConfigError
from tests.supervisor.command import CODE, Strongroom

LIBRARIES: Final = Path(msgspec.__file__).parent.parent
OURS: Final = Path(supervisor.__file__).parent

CODES: Final = {
    "the supervisor": OURS,
    "the workers": Path(workers.__file__).parent,
    "both": OURS.parent,
    "a part of the supervisor": OURS / "agent",
    "msgspec": LIBRARIES / "msgspec",
    "the libraries": LIBRARIES,
    "another library": LIBRARIES / "click",
    "the environment": Path(sys.prefix),
    "its programs": Path(sys.executable).parent,
    "the interpreter": Path(os.path.realpath(sys.executable)).parent,
    "the standard library": Path(os.__file__).parent,
    "a part of the standard library": Path(os.__file__).parent / "json",
}

CODE_ROOTS = pytest.mark.parametrize("code", CODES.values(), ids=CODES)
LIST: Final = ("call", "list_files", '{"pattern": "*"}')


@CODE_ROOTS
def test_a_writable_profile_refuses_a_root_with_code_that_runs(strongroom: Strongroom, code: Path) -> None:
    done = strongroom.run(*LIST, "--root", str(code))
    assert (done.code, done.out) == (2, "")
    assert "which Strongroom itself runs" in done.err
    assert not strongroom.home.exists()


@CODE_ROOTS
def test_a_profile_that_only_reads_takes_it(strongroom: Strongroom, code: Path) -> None:
    strongroom.home.mkdir(mode=0o700)
    (strongroom.home / "config.toml").write_text("[profiles.vault]\nwritable = false\n")
    done = strongroom.run(*LIST, "--root", str(code))
    assert (done.code, done.json["ok"]) == (0, True)


def test_a_room_with_the_environment_in_it_is_refused(tmp_path: Path) -> None:
    environment = tmp_path / "room" / "env"
    venv.create(environment, symlinks=True)
    program = (
        f"import sys; sys.path += [{str(CODE)!r}, {str(LIBRARIES)!r}]; import supervisor.__main__ as it; it.main()"
    )
    command = [f"{environment}/bin/python", "-I", "-c", program, *LIST, "--root", str(environment.parent)]
    done = subprocess.run(
        command,
        env={"STRONGROOM_HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert f"holds code of '{environment}/bin'" in done.stderr


def test_a_link_to_the_code_is_no_way_around(strongroom: Strongroom) -> None:
    (strongroom.folder / "link").symlink_to(OURS)
    assert strongroom.run(*LIST, "--root", "link").code == 2


def test_a_room_with_a_link_on_the_way_to_the_code_is_refused(strongroom: Strongroom) -> None:
    room = strongroom.folder / "room"
    room.mkdir()
    (room / "code").symlink_to(CODE)
    strongroom.environment["PYTHONPATH"] = str(room / "code")  # who replaces the link replaces the code
    done = strongroom.run(*LIST, "--root", "room")
    assert (done.code, "which Strongroom itself runs" in done.err) == (2, True)


class EditableFinder:
    """As setuptools leaves one for an editable install, in a module with its table of packages."""


@pytest.mark.parametrize("named", ["sys.path", "an editable install", "LD_LIBRARY_PATH"])
def test_a_writable_root_with_a_place_where_code_is_looked_for_is_refused(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "room" / "src"
    place.mkdir(parents=True)
    libraries = {}
    if named == "sys.path":
        monkeypatch.setattr(sys, "path", [*sys.path, str(place)])
    elif named == "LD_LIBRARY_PATH":
        libraries = {named: f"/usr/lib:{place}"}
    else:
        monkeypatch.setattr(sys.modules[__name__], "MAPPING", {"package": str(place)}, raising=False)
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, EditableFinder])
    settings = load({"STRONGROOM_HOME": str(tmp_path / "home"), **libraries})
    for root in ("room", "room/src"):
        with pytest.raises(ConfigError, match="looks for code"):
            resolve(settings, "vault", str(tmp_path / root))
    (place / "notes").mkdir()
    assert resolve(settings, "vault", str(place / "notes")).root == str(place / "notes")
