"""The format of packs: what was written stays readable, and nothing else passes for it."""

import base64
import hashlib
import os
import tempfile
from typing import Final

import pytest

from workers.changes.effects import NodeState
from workers.wire import frames
from workers.wire.pack_format import HEADER, Broken, PackedContent, PackedName, PackEnd, PackReader, encoded

FILE: Final = NodeState("file", 0o644, 3, 10**18, hashlib.sha256(b"old").digest())
PARTS: Final = (
    PackedName("n", NodeState("dir", 0o755)),
    PackedName("n/x", FILE, attributes={"user.x": b"1"}, kept=True),
    PackedContent(b"ol"),
    PackedContent(b"d"),
    PackedName(r"n/\xff", NodeState("link", 0o777, mtime_ns=10**18, target="/etc"), None, b"n/\xff"),
)

FIRST: Final = (
    "0000pgrszNaAl}Za%pF2ZeeVqX=DeaaA9<4p>C#PWoB=3WrCz@X>MerWNC7wZEs{{%>nHI005JQq;z?3WvEYbX=iC}VQivlWCx^hVRUGtZZC"
    "MIVr6D;a%F|2YiVv|q-JSsWu$FyWM$0(q@;6cdSwHsZFFgEWnXS{&kf+Vv!`SL0H$PVXJvDA#30L{Ygab<_I^~bdsZH<lsR5^Oi_A$kqT5co)"
    "Tls`_!sobaZlQVs&(7bAhIHb7gWac*FrQq-$kxbi)7u02za%ba`-PrBG>QV`ZXgWCx^VVRT`{0&i>p000<+q;z?3Wu;JQWn*QcX=DeaWMOn+!"
    "~tXg003o$q;z?3WvEYbX=iC}VQivlWCx^hVRUGwZZBMTW@e^hWoB=3WrU<_X>MesY-w(5q-}3xWz7NqsBLs<ZDn6>bI%RnwzH>X005?RVRC0>"
    "bfhn3bYrM;VRv6}VRUH318y(>0000pf~0hLaAl)KZe*rpX=i0~bi^RI3^16Pa(ZKVU7uq!DY`%^JXR&>Wq_foFz|;!Z}9^"
)
"""A pack of version 1 with the same parts, as it was written when that was the only one."""


def written(*parts: PackedName | PackedContent) -> bytes:
    data = HEADER + b"".join(map(encoded, parts))
    return data + encoded(PackEnd(hashlib.sha256(data).digest()))


def read(data: bytes) -> tuple[list[PackedName | PackedContent], bytes]:
    """Return the parts of a pack, and the content that begins after the second of them."""
    with tempfile.TemporaryFile() as file:
        os.pwrite(file.fileno(), data, 0)
        reader = PackReader(file.fileno())
        found = [(part, reader.at) for part in reader.parts()]
        return [part for part, _ in found], b"".join(PackReader(file.fileno(), found[1][1]).contents(3))


def test_a_pack_of_the_first_version_is_readable() -> None:
    parts, content = read(base64.b85decode(FIRST))
    assert content == b"old"
    for part, wanted in zip(parts, PARTS, strict=True):
        assert isinstance(part, type(wanted))
        assert all(getattr(part, field) == getattr(wanted, field) for field in wanted.__struct_fields__)


def test_any_byte_of_a_pack_of_the_first_version_counts() -> None:
    data = base64.b85decode(FIRST)
    for at in range(len(data)):
        with pytest.raises(Broken):
            read(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def test_a_pack_reads_back_as_what_was_written() -> None:
    assert read(written(*PARTS)) == (list(PARTS), b"old")


def test_the_format_of_a_pack_does_not_change() -> None:
    """Packs are read by later versions: who changes these bytes needs a new version of the format."""
    digest = "da52e76527860db21eec41198032ebfeafc5c63c62f80ce2819e5cc95f0510c1"
    assert hashlib.sha256(written(*PARTS)).hexdigest() == digest


def test_a_pack_of_a_later_version_is_refused() -> None:
    with pytest.raises(Broken, match="does not know"):
        read(written(*PARTS).replace(b"pack 2", b"pack 3", 1))


def test_no_worker_says_what_stands_in_a_pack() -> None:
    for part in (PARTS[0], PARTS[2], PackEnd(bytes(32))):
        with pytest.raises(frames.FrameError):
            frames.decode_up(encoded(part)[frames.LENGTH.size :])


def test_small_parts_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[PackedName | PackedContent] = [PARTS[0]]
    for number in range(1000):
        parts += PackedName(f"f{number}", FILE, kept=True), PackedContent(b"old")
    data, preads, system_pread = written(*parts), [0], os.pread

    def pread(file: int, size: int, at: int) -> bytes:
        preads[0] += 1
        return system_pread(file, size, at)

    monkeypatch.setattr(os, "pread", pread)
    assert read(data) == (parts, b"old")
    assert preads[0] < 10 + len(data) / 2**14
