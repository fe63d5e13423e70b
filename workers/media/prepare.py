"""Everything that a media worker needs for its life, made ready before it is locked in.

Rule: afterwards no file can be opened, so nothing may be left for later. The libraries import a part of themselves only
when it is used: all their modules are imported here, and one of each kind of content is converted.
"""

import gc
import importlib
import logging
import pkgutil
import warnings
from contextlib import suppress
from types import ModuleType
from typing import Final

from workers.confine.steps import Prepared
from workers.libraries.unimported import without

_UNUSED: Final = ("cryptography", "Crypto", "fontTools", "brotli", "arabic_reshaper", "bidi", "numpy", "pyarrow")
"""What pypdf and Pillow import where it is installed: for encrypted documents, which are refused, and to write some."""
_PLUGINS: Final = (
    *("PngImagePlugin", "JpegImagePlugin", "MpoImagePlugin", "GifImagePlugin", "WebPImagePlugin", "TiffImagePlugin"),
)
"""Pillow's formats, a JPEG of several pictures as phones make them among these, and what reads EXIF."""
_CODECS: Final = (
    *("ascii", "latin-1", "utf-8", "utf-16-be", "utf-16-le", "charmap", "cp1252", "mac-roman", "unicode_escape"),
    *("gb2312", "gbk", "gb18030", "big5", "cp950", "shift_jis", "cp932", "euc_jp", "euc_kr", "cp949"),
)
"""Those that documents may name, and messages."""


def prepare(call_s: float) -> Prepared:
    """Import the libraries, and all that they would import later.

    Raises:
        OSError: one of them is not there, or does not work.
    """
    warnings.simplefilter("ignore")  # nobody reads them, and Python would look into its own source for each
    logging.disable()
    with without(_UNUSED):
        try:
            import pypdf

            _import_all(pypdf)
            for name in _PLUGINS:
                importlib.import_module(f"PIL.{name}")
            from workers.media.converter import MediaConverter
            from workers.media.documents import sample
            from workers.media.images import warm_up
        except ImportError as error:
            raise OSError(f"{error}: pip install pillow pypdf") from error
        for codec in _CODECS:
            b"a\x81@\xa1\xa1\0".decode(codec, "replace")
        converter = MediaConverter(call_s)
        warm_up()
        converter.convert(sample(), "application/pdf", 64, 0.0)
    gc.collect()
    return Prepared(converter)


def _import_all(package: ModuleType) -> None:
    """Import every module of a package that does not lack another library."""
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda _name: None):
        with suppress(ImportError):
            importlib.import_module(each.name)
