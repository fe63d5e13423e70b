"""Whether yarn leaves packages as they are, by what its settings and the manifest say."""

from pathlib import Path
from typing import Final

import pytest

from supervisor.system.package_look import plugs_in

ROOTS: Final = {
    "nothing": ({}, False),
    "yarn 1": ({"package.json": '{"packageManager": "yarn@1.22.0"}', "yarn.lock": ""}, False),
    "yarn 4": ({"package.json": '{"packageManager": "yarn@4.1.0"}'}, True),
    "settings": ({".yarnrc.yml": "enableTelemetry: false\n"}, True),
    "the linker by its name": ({".yarnrc.yml": 'nodeLinker: "pnp"\n'}, True),
    "another linker": ({".yarnrc.yml": "nodeLinker: node-modules\n", ".pnp.cjs": ""}, False),
    "what it left": ({".pnp.cjs": ""}, True),
}


@pytest.mark.parametrize(("files", "plugs"), ROOTS.values(), ids=ROOTS)
def test_yarn_leaves_packages_as_they_are_unless_it_is_told_otherwise(
    tmp_path: Path, files: dict[str, str], plugs: bool
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert plugs_in(str(tmp_path)) is plugs
