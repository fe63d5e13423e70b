"""Images: what leaves the media worker is upright, small enough, and made of pixels alone."""

import io

import pytest
from PIL import Image

from tests.each_row import each_row
from tests.media_files import GPS, animation, photo, picture
from tests.workers.media.conftest import MediaWorker


def decoded(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize(
    ("form", "media_type", "mode"),
    [
        *(("PNG", "image/png", mode) for mode in ("RGB", "RGBA", "P", "L", "LA", "1", "I;16")),
        *(("JPEG", "image/jpeg", mode) for mode in ("RGB", "L", "CMYK")),
        *(("WEBP", "image/webp", mode) for mode in ("RGB", "RGBA")),
        ("GIF", "image/gif", "P"),
    ],
)
def test_an_image_of_each_format_and_mode_keeps_its_pixels(
    form: str, media_type: str, mode: str, media: MediaWorker
) -> None:
    told, data = media.shown(picture(form, mode=mode), media_type)
    assert (told["width"], told["height"], told["note"]) == (64, 48, "")
    image = decoded(data).convert("RGBA")
    left, right = image.getpixel((8, 24)), image.getpixel((56, 24))
    assert isinstance(left, tuple)
    assert isinstance(right, tuple)
    if mode in ("RGB", "RGBA", "P", "CMYK"):
        assert left[0] - left[2] > 150
        assert right[2] - right[0] > 150 or right[3] == 0
    else:
        assert right[0] - left[0] > 150


def test_a_large_image_is_scaled_down_and_says_so(media: MediaWorker) -> None:
    told, data = media.shown(picture(size=(3000, 1500)), "image/png")
    assert (told["width"], told["height"]) == decoded(data).size == (1568, 784)
    assert told["note"] == "scaled down from 3000 x 1500 pixels"


def test_the_longest_side_is_the_callers(media: MediaWorker) -> None:
    told, _ = media.shown(picture(size=(100, 300)), "image/png", edge=100)
    assert (told["width"], told["height"]) == (33, 100)


def test_a_photo_of_a_hundred_megapixels_is_decoded_small(media: MediaWorker) -> None:
    told, _ = media.shown(picture("JPEG", size=(12_000, 9_000)), "image/jpeg")
    assert (told["width"], told["height"]) == (1568, 1176)


@each_row(("turned", "size"), [(1, (64, 48)), (3, (64, 48)), (6, (48, 64)), (8, (48, 64)), (99, (64, 48))])
def test_a_photo_is_turned_upright(turned: int, size: tuple[int, int], media: MediaWorker) -> None:
    assert decoded(media.shown(photo(turned), "image/jpeg").data).size == size


def test_nothing_that_was_said_about_a_picture_goes_on(media: MediaWorker) -> None:
    whole = photo()
    assert whole.count(GPS.encode()) == 3
    data = media.shown(whole, "image/jpeg").data
    assert GPS.encode() not in data
    assert dict(decoded(data).getexif()) == {}
    marked = picture("PNG", icc_profile=b"a profile", dpi=(72, 72))
    assert decoded(media.shown(marked, "image/png").data).info == {}


def test_what_hangs_behind_an_image_does_not_go_on(media: MediaWorker) -> None:
    assert b"<script>" not in media.shown(picture() + b"<script>alert(1)</script>", "image/png").data


def test_a_phones_jpeg_of_several_pictures_is_its_first(media: MediaWorker) -> None:
    whole = picture("MPO", save_all=True, append_images=[Image.new("RGB", (64, 48))])
    told, data = media.shown(whole, "image/jpeg")
    assert told == {"media_type": "image/jpeg", "width": 64, "height": 48, "note": ""}
    left = decoded(data).getpixel((8, 24))
    assert isinstance(left, tuple)
    assert left[0] > 200


def test_an_animation_is_its_first_picture(media: MediaWorker) -> None:
    told, data = media.shown(animation(5), "image/gif")
    assert told["note"] == "the first picture of an animation"
    assert decoded(data).convert("RGB").getpixel((4, 4)) == (255, 0, 0)


def test_a_noisy_picture_becomes_a_photo(media: MediaWorker) -> None:
    noise = io.BytesIO()
    Image.effect_noise((1400, 1400), 200).convert("RGB").save(noise, "PNG")
    told, data = media.shown(noise.getvalue(), "image/png")
    assert told["media_type"] == "image/jpeg"
    assert len(data) < 3 * 2**20
