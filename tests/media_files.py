"""Images and documents, made here: good ones, hostile ones, and what becomes of a good one that is cut or changed."""

import io
import random
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from PIL import Image

GPS: Final = "53 deg N, secret place"
_ORIENTATION, _DESCRIPTION = 0x0112, 0x010E


def picture(form: str = "PNG", size: tuple[int, int] = (64, 48), mode: str = "RGB", **how: Any) -> bytes:
    """Return a picture whose left half is red and whose right half is blue, or dark and bright."""
    image = Image.new(mode, size)
    colours: Mapping[str, tuple[Any, Any]] = {
        "RGB": ("red", "blue"),
        "RGBA": ((255, 0, 0, 255), (0, 0, 255, 0)),
        "CMYK": ((0, 255, 255, 0), (255, 255, 0, 0)),
        "P": (1, 2),
        "1": (0, 1),
    }
    if mode == "I;16":  # which nothing can be pasted into
        line = (5000).to_bytes(2, "little") * (size[0] // 2) + (60000).to_bytes(2, "little") * (size[0] - size[0] // 2)
        return saved(Image.frombytes(mode, size, line * size[1]), form, **how)
    left, right = colours.get(mode, (20, 200))
    image.paste(left, (0, 0, size[0] // 2, size[1]))
    image.paste(right, (size[0] // 2, 0, *size))
    if mode == "P":
        image.putpalette([0, 0, 0, 255, 0, 0, 0, 0, 255])
    return saved(image, form, **how)


def saved(image: Image.Image, form: str, **how: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **how)
    return file.getvalue()


def photo(turned: int = 6, size: tuple[int, int] = (64, 48)) -> bytes:
    """Return a JPEG with an orientation, a comment and a description that say where it was taken."""
    image = Image.new("RGB", size, "red")
    exif = image.getexif()
    exif[_ORIENTATION] = turned
    exif[_DESCRIPTION] = GPS
    return saved(image, "JPEG", exif=exif, comment=GPS.encode(), icc_profile=GPS.encode())


def animation(frames: int, size: tuple[int, int] = (16, 12)) -> bytes:
    """Return a GIF whose first frame is red, and all others are blue."""
    images = [Image.new("RGB", size, "red"), *(Image.new("RGB", size, (0, 0, each % 250)) for each in range(1, frames))]
    return saved(images[0], "GIF", save_all=True, append_images=images[1:], duration=10)


# --- PNG by hand ------------------------------------------------------------------------------------------------------


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    """Return a PNG of these chunks, whatever they say."""
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def header(width: int, height: int, depth: int = 8, colour: int = 2) -> tuple[bytes, bytes]:
    return b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)


END: Final = (b"IEND", b"")


@cache
def zeros(size: int) -> bytes:
    """Return so many zeros, deflated: whole MiB, each alike, then the last block and the sum of all."""
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    piece = deflate.compress(bytes(2**20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    whole = size // 2**20
    total = (whole * 2**20 % 65521) << 16 | 1  # Adler-32 of zeros counts them
    return b"\x78\xda" + piece * whole + deflate.flush() + struct.pack(">I", total)


# --- PDF by hand ------------------------------------------------------------------------------------------------------


def pdf(*pages: str, more: Mapping[int, bytes] | None = None, trailer: bytes = b"") -> bytes:
    """Return a document with a line of text on each page; `more` are objects that it has besides, or instead."""
    kids = b" ".join(b"%d 0 R" % (10 + 2 * each) for each in range(len(pages)))
    bodies = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(pages)),
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    }
    for number, text in enumerate(pages):
        words = b"BT /F1 12 Tf 72 700 Td (%s) Tj ET" % text.encode("latin-1")
        bodies[10 + 2 * number] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>"
            % (11 + 2 * number)
        )
        bodies[11 + 2 * number] = stream(words)
    return written({**bodies, **(more or {})}, trailer)


def stream(data: bytes, filters: bytes = b"") -> bytes:
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), filters, data)


def written(bodies: Mapping[int, bytes], trailer: bytes = b"") -> bytes:
    """Return a document of objects by their numbers, with a table of where they are."""
    file, places = bytearray(b"%PDF-1.4\n"), dict[int, int]()
    for number, body in bodies.items():
        places[number] = len(file)
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%d 1\n%010d 00000 n \n" % each for each in sorted(places.items()))
    ends = b"xref\n0 1\n0000000000 65535 f \n%strailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(file) + ends % (table, max(places) + 1, trailer, len(file))


# --- hostile ones -----------------------------------------------------------------------------------------------------

Made = Callable[[], bytes]

HOSTILE: Final[Mapping[str, tuple[str, Made]]] = {
    "a PNG of 60000 x 60000 zeros": (
        "image/png",
        lambda: png(header(60000, 60000, 1, 0), (b"IDAT", zeros(60000 * 7501 // 2**20 * 2**20)), END),
    ),
    "a PNG of the largest size": ("image/png", lambda: png(header(2**31 - 1, 2**31 - 1), (b"IDAT", zeros(0)), END)),
    "a PNG of no size": ("image/png", lambda: png(header(0, 0), (b"IDAT", zeros(0)), END)),
    "a PNG with fewer pixels than it says": ("image/png", lambda: png(header(900, 900), (b"IDAT", zeros(0)), END)),
    "a text in a PNG that inflates": (
        "image/png",
        lambda: png(header(8, 8), (b"zTXt", b"Comment\0\0" + zeros(512 * 2**20)), (b"IDAT", zeros(2**20)), END),
    ),
    "an international text in a PNG that inflates": (
        "image/png",
        lambda: png(header(8, 8), (b"iTXt", b"C\0\1\0\0\0" + zeros(512 * 2**20)), (b"IDAT", zeros(2**20)), END),
    ),
    "a profile in a PNG that inflates": (
        "image/png",
        lambda: png(header(8, 8), (b"iCCP", b"icc\0\0" + zeros(512 * 2**20)), (b"IDAT", zeros(2**20)), END),
    ),
    "a PNG of a hundred thousand texts": (
        "image/png",
        lambda: png(header(8, 8), *[(b"tEXt", b"k%d\0v" % each) for each in range(100_000)], (b"IDAT", zeros(0)), END),
    ),
    "a chunk that says it is 2 GB": (
        "image/png",
        lambda: png(header(8, 8)) + struct.pack(">I", 2**31 - 1) + b"IDAT" + bytes(99),
    ),
    "a GIF of the largest size": ("image/gif", lambda: b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + b";"),
    "a GIF with a frame of the largest size": (
        "image/gif",
        lambda: (
            b"GIF89a"
            + struct.pack("<HHBBB", 4, 4, 0, 0, 0)
            + b","
            + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0)
            + b"\2\2L\1\0;"
        ),
    ),
    "a GIF of comments without end": ("image/gif", lambda: b"GIF89a" + bytes(7) + b"!\xfe\1a\0" * 1_000_000),
    "a JPEG of the largest size": (
        "image/jpeg",
        lambda: picture("JPEG").replace(b"\xff\xc0\0\x11\x08\0\x30\0\x40", b"\xff\xc0\0\x11\x08\xff\xff\xff\xff"),
    ),
    "a progressive JPEG of 144 megapixels": (
        "image/jpeg",
        lambda: picture("JPEG", progressive=True).replace(
            b"\xff\xc2\0\x11\x08\0\x30\0\x40", b"\xff\xc2\0\x11\x08\x2e\xe0\x2e\xe0"
        ),
    ),
    "a PNG one pixel wide": ("image/png", lambda: png(header(1, 20_000_000, 1, 0), (b"IDAT", zeros(40 * 2**20)), END)),
    "a JPEG of nothing but markers": ("image/jpeg", lambda: b"\xff\xd8" + b"\xff\xe0\0\2" * 1_000_000),
    "a WebP of the largest size": (
        "image/webp",
        lambda: b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0" + bytes(4) + b"\xff\x3f\0\xff\x3f\0" + bytes(8),
    ),
    "HTML that says it is a PNG": ("image/png", lambda: b"<html><script>alert(1)</script></html>"),
    "HTML behind the beginning of a PNG": ("image/png", lambda: b"\x89PNG\r\n\x1a\n<html></html>"),
    "a GIF that says it is a PNG": ("image/png", lambda: animation(2)),
    "a PDF that says it is a JPEG": ("image/jpeg", lambda: pdf("x")),
    "nothing at all": ("image/png", lambda: b""),
    "a PDF of nothing": ("application/pdf", lambda: b"%PDF-1.7\n"),
    "HTML behind the beginning of a PDF": ("application/pdf", lambda: b"%PDF-1.7\n<html></html>\n%%EOF\n"),
    "a PDF without a page": ("application/pdf", pdf),
    "an encrypted PDF": (
        "application/pdf",
        lambda: pdf(
            "secret",
            more={4: b"<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (b"00" * 32, b"00" * 32)},
            trailer=b"/Encrypt 4 0 R/ID[<00><00>]",
        ),
    ),
    "a page tree that is its own child": (
        "application/pdf",
        lambda: pdf("x", more={2: b"<</Type/Pages/Kids[2 0 R]/Count 1>>"}),
    ),
    "a page tree that is a thousand deep": (
        "application/pdf",
        lambda: pdf(
            "x",
            more={
                2: b"<</Type/Pages/Kids[1000 0 R]/Count 1>>",
                **{each: b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % (each + 1) for each in range(1000, 3000)},
            },
        ),
    ),
    "arrays within arrays": ("application/pdf", lambda: pdf("x", more={1: b"[" * 200_000 + b"]" * 200_000})),
    "dictionaries within dictionaries": ("application/pdf", lambda: pdf("x", more={1: b"<</A" * 50_000})),
    "a table that names itself": (
        "application/pdf",
        lambda: (
            b"%PDF-1.4\nxref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 1/Prev 9/Root 1 0 R>>\nstartxref\n9\n%%EOF\n"
        ),
    ),
}
"""Files that must be declined, by what they are: the type that they claim, and what makes them."""

_CONTENT: Final = b"/Filter/FlateDecode"
TRYING: Final[Mapping[str, tuple[str, Made]]] = {
    "a PNG with more pixels than it says": ("image/png", lambda: png(header(8, 8), (b"IDAT", zeros(512 * 2**20)), END)),
    "a PNG of a wide line": ("image/png", lambda: png(header(20_000_000, 1), (b"IDAT", zeros(60 * 2**20)), END)),
    "a GIF of 100,000 frames": ("image/gif", lambda: many_frames(100_000)),
    "a PDF whose text inflates": ("application/pdf", lambda: pdf("x", more={11: stream(zeros(512 * 2**20), _CONTENT)})),
    "a PDF whose text inflates twice": (
        "application/pdf",
        lambda: pdf("x", more={11: stream(zlib.compress(zeros(1024 * 2**20)), b"/Filter[/FlateDecode/FlateDecode]")}),
    ),
    "a PDF with a page of a million words": (
        "application/pdf",
        lambda: pdf("x", more={11: stream(b"BT /F1 1 Tf " + b"(word) Tj " * 700_000 + b"ET")}),
    ),
    "a PDF with 20,000 pages": ("application/pdf", lambda: pdf(*["page"] * 20_000)),
    "a PDF with a stream that says it is 2 GB": (
        "application/pdf",
        lambda: pdf("x", more={11: b"<</Length 2147483647>>stream\nBT ET\nendstream"}),
    ),
    "a form that draws itself": (
        "application/pdf",
        lambda: pdf(
            "x",
            more={
                11: stream(b"/X Do"),
                10: b"<</Type/Page/Parent 2 0 R/Contents 11 0 R/Resources<</XObject<</X 40 0 R>>>>>>",
                40: stream(b"/X Do", b"/Type/XObject/Subtype/Form/Resources<</XObject<</X 40 0 R>>>>"),
            },
        ),
    ),
}
"""Files that may be shown in part or declined, and take no more time and memory than any."""


def many_frames(frames: int) -> bytes:
    whole = animation(2, (4, 4))
    start = whole.index(b"!\xf9", whole.index(b"!\xf9") + 1)
    return whole[:start] + whole[start:-1] * frames + b";"


def cut(whole: bytes, step: int = 100) -> Iterator[bytes]:
    """Yield a file cut at every so many bytes."""
    return (whole[:size] for size in range(0, len(whole), step))


def mutated(whole: bytes, times: int, seed: int) -> Iterator[bytes]:
    """Yield a file in which chance has changed, removed, repeated or moved something, its beginning aside."""
    chance = random.Random(seed)
    for _ in range(times):
        changed = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            if len(changed) < 32:
                break
            at = chance.randrange(8, len(changed))
            match chance.randrange(4):
                case 0:
                    changed[at] = chance.randrange(256)
                case 1:
                    del changed[at : at + chance.randint(1, 40)]
                case 2:
                    changed[at:at] = changed[max(8, at - chance.randint(1, 200)) : at]
                case _:
                    changed[at : at + 4] = chance.choice(
                        (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"%%EO")
                    )
        yield bytes(changed)
