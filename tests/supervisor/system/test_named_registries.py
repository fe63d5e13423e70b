"""Where files of a root say that packages come from."""

from pathlib import Path
from typing import Final

import pytest

from supervisor.system.named_registries import places_named
from supervisor.system.project_files import ProjectFiles

EVIL: Final = "https://evil.example/x"
MIXED: Final = f'{{"resolved": "{EVIL}", "funding": {{"url": "https://people.example"}}}}'
PROJECT: Final = f'[project.urls]\nHome = "https://people.example"\n[[tool.uv.index]]\nurl = "{EVIL}"\n'
ROWS: Final = {
    ".npmrc": ("npm", f"@s:registry={EVIL}\n", ["evil.example:443"]),
    ".yarnrc.yml": ("npm", f"npmRegistryServer: {EVIL}\n", ["evil.example:443"]),
    "bunfig.toml": ("npm", f'[install]\nregistry = "{EVIL}"\n', ["evil.example:443"]),
    "package-lock.json": ("npm", MIXED, ["evil.example:443"]),
    "pip.conf": ("pypi", "[global]\nextra-index-url = http://u:p@evil.example:81/simple\n", ["evil.example:81"]),
    "requirements.txt": ("pypi", f"-f {EVIL}\ntiny\n", ["evil.example:443"]),
    "pyproject.toml": ("pypi", PROJECT, ["evil.example:443"]),
    "uv.toml": ("pypi", f'index-url = "{EVIL}"\nfind-links = ["file:///wheels"]\n', ["evil.example:443"]),
    ".cargo/config.toml": ("crates", f'[source.x]\nregistry = "sparse+{EVIL}"\n', ["evil.example:443"]),
    "Cargo.lock": ("crates", 'source = "registry+https://github.com/rust-lang/crates.io-index"\n', []),
    "README.md": ("npm", EVIL, []),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_file_s_places_are_named_with_it(tmp_path: Path, name: str) -> None:
    registry, text, places = ROWS[name]
    for above in ("", "web/"):
        (tmp_path / above / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / above / name).write_text(text)
        found = list(places_named(str(tmp_path), above.removesuffix("/"), registry, ProjectFiles(2**20)))
        assert found == [(f"{each}{name}", place) for each in dict.fromkeys((above, "")) for place in places]
    assert list(places_named(str(tmp_path), "web", "go", ProjectFiles(2**20))) == []
