"""Contents of a home: whole or not there, named by sessions, gone with the last of them."""

import hashlib
import os
import stat
import threading
from pathlib import Path

import pytest

from supervisor.categories.media import MediaConfig
from supervisor.errors import KeptError
from supervisor.journal.contents import ContentStore

MB = 2**20


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "content", MediaConfig())


def kept(store: ContentStore) -> set[str]:
    return {each for each in os.listdir(store.directory) if "." not in each}


def test_a_content_is_read_as_it_was_put(store: ContentStore) -> None:
    digest = store.put("s", b"an image")
    assert digest == hashlib.sha256(b"an image").hexdigest()
    assert store.read(digest) == b"an image"


def test_nobody_else_may_look_at_it(store: ContentStore) -> None:
    os.umask(before := os.umask(0))
    try:
        os.umask(0)
        digest = store.put("s", b"an image")
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.path(digest).stat().st_mode) == 0o600
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"an imagE", b"an image and more"])
def test_what_is_no_longer_what_it_was_is_not_read_and_is_mended_by_the_next_put(
    damage: bytes, store: ContentStore
) -> None:
    digest = store.put("s", b"an image")
    store.path(digest).write_bytes(damage)
    with pytest.raises(KeptError, match=digest):
        store.read(digest)
    assert store.put("s", b"an image") == digest
    assert store.read(digest) == b"an image"


def test_a_link_in_the_place_of_a_content_is_not_followed(store: ContentStore, tmp_path: Path) -> None:
    digest = store.put("s", b"an image")
    (tmp_path / "elsewhere").write_bytes(b"an image")
    store.path(digest).unlink()
    store.path(digest).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeptError):
        store.read(digest)


@pytest.mark.parametrize("name", ["", "../journal.db", "a" * 63, "A" * 64])
def test_no_other_name_is_read(name: str, store: ContentStore) -> None:
    store.put("s", b"an image")
    with pytest.raises(KeptError):
        store.read(name)


def test_a_content_goes_with_the_last_session_that_names_it(store: ContentStore) -> None:
    both, first = store.put("first", b"both"), store.put("first", b"first")
    store.put("second", b"both")
    assert kept(store) == {both, first}
    store.forget("first")
    assert kept(store) == {both}
    store.forget("second")
    assert os.listdir(store.directory) == []


def test_where_there_is_too_much_what_was_not_looked_at_for_longest_goes(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "content", MediaConfig(total_mb=1))
    digests = [store.put("s", bytes([each]) * (MB // 3)) for each in range(3)]
    for age, digest in zip((30, 20, 10), digests, strict=True):
        os.utime(store.path(digest), (os.stat(store.path(digest)).st_mtime - age,) * 2)
    store.read(digests[0])
    last = store.put("s", bytes([9]) * (MB // 3))
    assert kept(store) == {digests[0], digests[2], last}


def test_what_a_killed_process_was_writing_is_swept(store: ContentStore) -> None:
    digest = store.put("s", b"an image")
    (store.directory / ".strongroom-0123456789abcdef.tmp").write_bytes(b"half")
    (store.directory / hashlib.sha256(b"unnamed").hexdigest()).write_bytes(b"unnamed")
    (store.directory / f"{hashlib.sha256(b'unwritten').hexdigest()}.s").touch()
    store.tidy()
    assert kept(store) == {digest}
    assert sorted(os.listdir(store.directory)) == sorted([digest, f"{digest}.s"])


def test_what_leads_to_a_content_is_synced_before_anybody_knows_of_it(
    store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def told(file: int) -> None:
        fsync(file)
        synced.append(os.fstat(file).st_ino)

    monkeypatch.setattr(os, "fsync", told)
    digest = store.put("s", b"an image")
    way = (store.directory.parent, store.path(digest), store.directory)
    assert synced == [each.stat().st_ino for each in way]


def test_a_directory_of_others_is_not_used(store: ContentStore) -> None:
    store.directory.mkdir(mode=0o777)
    store.directory.chmod(0o777)
    with pytest.raises(KeptError, match="can be written by others"):
        store.put("s", b"an image")


def test_many_threads_may_put_the_same(store: ContentStore) -> None:
    threads = [threading.Thread(target=store.put, args=(f"s{each % 4}", b"an image" * 9999)) for each in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (digest,) = kept(store)
    assert store.read(digest) == b"an image" * 9999


def test_only_while_somebody_uses_them_contents_stay_in_memory(store: ContentStore) -> None:
    digest = store.put("s", b"an image")
    assert store.encoded(digest) == "YW4gaW1hZ2U="
    assert store.at_hand(digest) is None
    with store.in_use():
        with store.in_use():
            assert store.encoded(digest) == "YW4gaW1hZ2U="
        assert store.at_hand(digest) == "YW4gaW1hZ2U="
    assert store.at_hand(digest) is None


def test_no_more_than_so_much_stays_in_memory(store: ContentStore) -> None:
    digests = [store.put("s", bytes([each]) * 5 * MB) for each in range(3)]
    with store.in_use():
        for digest in digests:
            store.encoded(digest)
        assert [store.at_hand(each) is not None for each in digests] == [False, True, True]
