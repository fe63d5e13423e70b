"""What a command installs by what it starts: recipes, scripts of packages, scripts of a shell; and what it does not."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from supervisor.rules.started_installs import started_install, starts_others
from tests.each_row import each_row

MAKEFILE: Final = """VENV ?= .venv
PIP := $(VENV)/bin/pip
.PHONY: all test deps
all: test

test: deps lint ; true
\tpytest -q
deps: requirements.txt | $(VENV)
\t@$(PIP) install -r \\
\t  requirements.txt
$(VENV):
\tpython3 -m venv $(VENV)
lint:
\truff check .
front: ; @true
\tcd web && npm ci
recurse:
\t$(MAKE) deps
loop: loop
\t$(MAKE) loop
each:
\tfor d in a b; do (cd $$d && npm ci); done
perhaps:
\tif [ ! -d node_modules ]; then npm install left-pad; fi
quoted:
\techo pip install x
pattern:
\tcd 'w*' && npm install left-pad
shell:
\tpip install $(shell cat names)
"""
SETUP: Final = "#!/bin/sh\nset -e\n# npm install\ncd web\nnpm install left-pad || exit 1\n"
SCRIPTS: Final = '{"scripts": {"pretest": "npm install x", "test": "jest", "build": "tsc", "all": "npm run test"}}'
FILES: Final = {"Makefile": MAKEFILE, "setup.sh": SETUP, "package.json": SCRIPTS, "tool.py": "#!/usr/bin/python\npip\n"}
VENV: Final = {".venv/pyvenv.cfg": ""}


class Row(NamedTuple):
    """A command, the registries that it wants, and what else there is."""

    command: str
    wants: tuple[str, ...] = ()
    files: Mapping[str, str] = {}


ROWS: Final = (
    Row("make", ("pypi",)),
    Row("make test", ("pypi",)),
    Row("make deps > /dev/null && echo done", ("pypi",)),
    Row("make -j4 recurse V=1", ("pypi",)),
    Row("make front", ("npm",)),
    Row("make test", (), VENV),
    Row("make deps PIP=x", ("pypi",)),
    Row("make front", ("npm",), VENV),
    Row("make lint"),
    Row("make loop"),
    Row("make each", ("npm",)),
    Row("make perhaps", ("npm",)),
    Row("make perhaps", (), {"node_modules/x": ""}),
    Row("make pattern", ("npm",), {"web/node_modules/x": ""}),
    Row("make quoted"),
    Row("make shell"),
    Row("make nothing"),
    Row("make -C web"),
    Row("make -f other.mk deps"),
    Row("./setup.sh", ("npm",)),
    Row("sh setup.sh", ("npm",)),
    Row("bash -c 'cd web; npm install y'", ("npm",)),
    Row("./setup.sh", (), {"web/node_modules/x": ""}),
    Row("cd web && ../setup.sh", ("npm",)),
    Row("./tool.py"),
    Row("../setup.sh"),
    Row("/etc/profile"),
    Row("sh"),
    Row("npm test", ("npm",)),
    Row("npm run all", ("npm",)),
    Row("npm run build"),
    Row("npm run"),
    Row("npm test", (), {"node_modules/x": ""}),
    Row("npm test", (), {"package.json": "[1"}),
)


def command_of(row: Row) -> str:
    return json.dumps({"command": row.command})


@pytest.mark.parametrize("row", ROWS, ids=[f"{each.command} {[*each.files]}" for each in ROWS])
def test_what_a_command_starts_is_known_by_the_files_of_the_root(tmp_path: Path, row: Row) -> None:
    for name, text in {**FILES, **row.files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert starts_others("run_cmd", command_of(row))
    install = started_install("run_cmd", command_of(row), str(tmp_path))
    assert (install.registries if install else ()) == row.wants
    if install is not None:
        assert (install.alone, install.started) == (False, True)
        assert ", which starts " in install.command


def test_the_command_that_starts_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test:\n\tpip install x\n")
    install = started_install("run_cmd", command_of(Row("rm -rf out && make test; ls")), str(tmp_path))
    assert install is not None
    assert install.command == "make test, which starts pip install,"


def test_what_was_tried_in_vain_counts_whatever_is_there(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test:\n\tpip install x\n")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/pyvenv.cfg").touch()
    install = started_install("run_cmd", command_of(Row("make")), str(tmp_path), lacks=True)
    assert install is not None
    assert install.registries == ("pypi",)


@each_row("command", ["ls", "git status", "pytest -q", "npm$(x)", "cargo test"])
def test_of_most_commands_no_file_is_read(command: str) -> None:
    assert not starts_others("run_cmd", command_of(Row(command)))


HOSTILE: Final = {
    "many targets": "".join(f"t{at}: t{at + 1}\n\tmake t{at + 1}\n" for at in range(4000)),
    "words that grow": "".join(f"V{at} = $(V{at + 1}) $(V{at + 1}) $(V{at + 1})\n" for at in range(900)) + "x: $(V0)\n",
    "words that grow in many lines": "V0 = "
    + "$(V1)" * 90
    + "\nV1 = "
    + "$(V2)" * 90
    + "\nx:\n"
    + "\t$(V0)\n" * 20_000,
    "a long line": f"x: {'a ' * 60_000}\n\tmake x\n",
    "rules of many words": f"A = {'a ' * 240}\nT = {'t$(N) ' * 64}\n$(T): $(A) $(A) $(A)\n"
    + "N = 1\n$(T):$(A)\n" * 7_000,
    "many lines of many targets": f"A = {'a ' * 240}\nT = {' '.join(map(str, range(120)))}\nU = $(T) $(T)\n$(U):\n"
    + "\t$(A)\n" * 20_000,
    "blanks": f"{' ' * 120_000}\n",
}


def test_of_long_files_that_start_each_other_only_the_first_are_read(tmp_path: Path) -> None:
    (tmp_path / "long.sh").write_text(f"#{' ' * 100_000}\n")
    for count, registries in ((1, ("pypi",)), (5, ())):
        (tmp_path / "all.sh").write_text("sh long.sh\n" * count + "pip install x\n")
        install = started_install("run_cmd", command_of(Row("sh all.sh")), str(tmp_path))
        assert (install.registries if install else ()) == registries


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_makefile_that_is_made_to_be_read_for_long_is_not(tmp_path: Path, text: str) -> None:
    (tmp_path / "Makefile").write_text(text)
    assert started_install("run_cmd", command_of(Row("make")), str(tmp_path)) is None
