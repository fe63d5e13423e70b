"""Documents: their pages, and their text for models that take none."""

from tests.each_row import each_row
from tests.media_files import pdf
from tests.workers.media.conftest import MediaWorker


def test_a_document_has_pages_and_a_text(media: MediaWorker) -> None:
    told, text = media.shown(pdf("First.", "Second."), "application/pdf")
    assert told == {"media_type": "application/pdf", "pages": 2, "note": ""}
    assert text == b"[Page 1]\nFirst.\n\n[Page 2]\nSecond."


def test_a_document_without_a_text_says_so(media: MediaWorker) -> None:
    assert media.shown(pdf("", ""), "application/pdf") == (
        {"media_type": "application/pdf", "pages": 2, "note": "it has no text"},
        b"",
    )


def test_a_long_text_ends_and_says_so(media: MediaWorker) -> None:
    told, text = media.shown(pdf(*["word " * 12_000] * 8), "application/pdf")
    assert told["pages"] == 8
    assert text.endswith(b"(Only the text of the first 4 of 8 pages: the rest is left out.)")


def test_one_page_that_cannot_be_read_leaves_the_others(media: MediaWorker) -> None:
    broken = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 11 0 R/Resources 7>>"
    _, text = media.shown(pdf("First.", "Second.", more={10: broken}), "application/pdf")
    assert b"Second." in text
    assert text.startswith(b"[Page 1]\n")


@each_row("name", ["Identity-H", "GBK-EUC-H", "90ms-RKSJ-H", "UniJIS-UTF16-H", "ETen-B5-H", "GBpc-EUC-H"])
def test_a_font_of_another_script_is_read_where_nothing_can_be_imported(name: str, media: MediaWorker) -> None:
    font = (
        b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/%s/DescendantFonts[<</Type/Font/Subtype/CIDFontType2"
        b"/BaseFont/X/CIDSystemInfo<</Registry(A)/Ordering(B)/Supplement 0>>>>]>>" % name.encode()
    )
    told, _ = media.shown(pdf("AABB", more={3: font}), "application/pdf")
    assert told["pages"] == 1
