"""Which crates of a cache are held to the digests of the index beside them."""

import hashlib
from pathlib import Path
from typing import Final

import pytest

from supervisor.system.crate_index import other_crates

HEADER: Final = b"\3\2\0\0\0etag\0"
CRATE: Final = b"the right one"
DIGEST: Final = hashlib.sha256(CRATE).hexdigest()
OTHER: Final = hashlib.sha256(b"evil").hexdigest()


def named(key: str, version: str, digest: str) -> bytes:
    return f'{key}\0{{"name":"abcd","vers":"{version}","cksum":"{digest}"}}\0'.encode()


INDEXES: Final = {
    "as cargo writes it": (HEADER + named("0.9.0", "0.9.0", OTHER) + named("1.0.0", "1.0.0", DIGEST), True),
    "another digest": (HEADER + named("1.0.0", "1.0.0", OTHER), False),
    "another key": (HEADER + named("1.0.0", "1.0.0", OTHER) + named("9.9.9", "1.0.0", DIGEST), False),
    "a version twice": (HEADER + named("1.0.0", "1.0.0", OTHER) + named("1.0.0", "1.0.0", DIGEST), False),
    "deep JSON": (HEADER + named("1.0.0", "1.0.0", DIGEST) + b'2.0.0\0{"x":' + b"[" * 100_000 + b"\0", False),
    "another format": (b"\4" + HEADER[1:] + named("1.0.0", "1.0.0", DIGEST), False),
    "nothing": (b"", False),
}


@pytest.mark.parametrize(("index", "stays"), INDEXES.values(), ids=INDEXES)
def test_a_crate_stays_whose_digest_the_index_has_as_cargo_reads_it(index: bytes, stays: bool, tmp_path: Path) -> None:
    crate, listed = "cache/index.example-1/abcd-1.0.0.crate", "index/index.example-1/.cache/ab/cd/abcd"
    for where in ("cache", "stage"):
        for path, content in ((crate, CRATE), (listed, index)):
            (tmp_path / where / path).parent.mkdir(parents=True)
            (tmp_path / where / path).write_bytes(content)
    cache, new = tmp_path / "cache", str(tmp_path / "stage" / crate)
    assert list(other_crates(cache, {crate: new})) == ([] if stays else [new, str(cache / crate)])
    (cache / listed).unlink()
    found = list(other_crates(cache, {listed: str(tmp_path / "stage" / listed)}))
    assert found == ([] if stays else [str(cache / crate)])
