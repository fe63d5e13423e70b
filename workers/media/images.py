"""Images: decoded by Pillow, turned upright, scaled down, and encoded anew.

Rule: no byte of the file goes on. What leaves is made of pixels alone, so neither where a picture was taken, nor what
else hides in its file, is sent to a model. Sizes are looked at before anything is decoded.
"""

from collections.abc import Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final

from PIL import Image

from workers.errors import ToolError
from workers.tool import ContentResult

FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}
)
"""Pillow's name of each format. It is told which one, and tries no other."""

_PIXELS: Final[Mapping[str, int]] = MappingProxyType({"image/webp": 12_000_000})
_PIXELS_OTHERWISE: Final = 21_000_000
"""Pixels that are decoded, at most: so many take half of the worker's memory, with what is made of them on the way. A
JPEG is decoded at an eighth of its size, if need be."""

_COEFFICIENTS: Final = 90_000_000
"""Of a progressive JPEG, at most, two bytes each: all are held before the first pixel is decoded."""

_ORIENTATION: Final = 0x0112
"""The tag of EXIF that says which side is up."""
_UPRIGHT: Final[Mapping[int, Any]] = MappingProxyType(
    {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }
)

_LARGE: Final = 3 * 2**19
"""Bytes above which a picture without transparency becomes a JPEG; and beyond twice as many, any picture."""
_QUALITY: Final = 85
_DEEP: Final = ("I", "I;16", "I;16B", "I;16L", "F")
"""Modes with more than eight bits of grey."""


def converted(content: bytes, media_type: str, edge: int) -> ContentResult:
    """Return an image whose longer side has at most `edge` pixels, as PNG or JPEG, with its measures.

    Raises:
        ToolError: `too_large`, it has too many pixels.
        Exception: the content is damaged.
    """
    image: Image.Image = Image.open(BytesIO(content), formats=(FORMATS[media_type],))
    before, photo = image.size, media_type == "image/jpeg"
    if photo:
        _refuse_if_progressive(image)
        image.draft(None, (edge, edge))
    _refuse_if_large(image, media_type, before)
    animated = not photo and bool(getattr(image, "is_animated", False))
    image.load()
    way = _UPRIGHT.get(_orientation(image))
    image = _plain(image)
    if max(image.size) > edge:
        image.thumbnail((edge, edge), Image.Resampling.LANCZOS, reducing_gap=2.0)
    if way is not None:
        image = image.transpose(way)
        before = (before[1], before[0]) if way.name in _TURNING else before
    kind, data = _encoded(image, photo=photo)
    told: dict[str, Any] = {"media_type": kind, "width": image.width, "height": image.height}
    notes = [f"scaled down from {before[0]} x {before[1]} pixels"] if before != image.size else []
    notes += ["the first picture of an animation"] if animated else []
    return ContentResult({**told, "note": "; ".join(notes)}, data)


_TURNING: Final = ("TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")


def _refuse_if_progressive(image: Any) -> None:
    """Refuse a JPEG that its decoder would find no memory for; it would say then that the file is damaged.

    Args:
        image: of JPEG, with `layer`: number, and how often it has a sample across and down, of each component.
    """
    samples = [across * down for _, across, down, _ in image.layer]
    held = image.width * image.height * sum(samples) // max(samples, default=1)
    if "progressive" in image.info and held > _COEFFICIENTS:
        raise ToolError(
            "too_large",
            f"It has {image.width} x {image.height} pixels, which is too much for a progressive JPEG. "
            "Scale it down first, or save it as a baseline JPEG.",
            width=image.width,
            height=image.height,
        )


def _refuse_if_large(image: Image.Image, media_type: str, size: tuple[int, int]) -> None:
    most = _PIXELS.get(media_type, _PIXELS_OTHERWISE)
    if image.width * image.height > most:
        raise ToolError(
            "too_large",
            f"It has {size[0]} x {size[1]} pixels; at most {most // 10**6} million are decoded. Scale it down first.",
            width=size[0],
            height=size[1],
        )


def _orientation(image: Image.Image) -> int:
    try:
        found = image.getexif().get(_ORIENTATION)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - what is said about a picture may be damaged while it is not
        return 1
    return found if isinstance(found, int) else 1


def _plain(image: Image.Image) -> Image.Image:
    """Return the pixels as L, RGB or RGBA, without anything that was said about them."""
    clear = image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info
    if image.mode in _DEEP:
        image = image.convert("I").point(lambda value: value / 256).convert("L")
        clear = False
    elif image.mode == "1":
        image = image.convert("L")
    wanted = "RGBA" if clear else "L" if image.mode == "L" else "RGB"
    image = image if image.mode == wanted else image.convert(wanted)
    image.info = {}
    return image


def _encoded(image: Image.Image, *, photo: bool) -> tuple[str, bytes]:
    """Return the type and the bytes of an image: a photo as JPEG, else PNG unless that is large."""
    data = b"" if photo else _saved(image, "PNG", compress_level=6)
    if data and len(data) <= (2 * _LARGE if image.mode == "RGBA" else _LARGE):
        return "image/png", data
    if image.mode == "RGBA":
        ground = Image.new("RGB", image.size, "white")
        ground.paste(image, mask=image.getchannel("A"))
        image = ground
    return "image/jpeg", _saved(image, "JPEG", quality=_QUALITY)


def _saved(image: Image.Image, form: str, **how: int) -> bytes:
    file = BytesIO()
    image.copy().save(file, form, **how)  # a copy, as one that was opened is looked for under the name of its file
    return file.getvalue()


def warm_up() -> None:
    """Encode and decode one image of each format, in each mode: afterwards no library has anything left to import.

    Pillow's own limit of pixels goes: ours is lower, and says what to do.
    """
    Image.MAX_IMAGE_PIXELS = None
    for form, mode in (("PNG", "RGBA"), ("PNG", "P"), ("PNG", "I;16"), ("JPEG", "RGB"), ("GIF", "P"), ("WEBP", "RGB")):
        media_type = next(each for each, name in FORMATS.items() if name == form)
        picture = Image.new(mode, (80, 72))
        exif = picture.getexif()
        exif[_ORIENTATION] = 6
        file = BytesIO()
        picture.save(file, form, **({} if form == "GIF" else {"exif": exif}))
        converted(file.getvalue(), media_type, 64)
