"""SHA-256 without hashlib, whose import loads OpenSSL and costs a worker's start 2.5 ms.

Rule: the interpreter's own implementation under its two names. It takes 3 ms for a MiB, three to five times as long
as OpenSSL: whoever reads a lot imports hashlib.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # from Python 3.12 on
    except ImportError:
        from _sha256 import sha256

__all__ = ["sha256"]
