"""Signatures of status files: proof that a holder of the key wrote the file and nobody has changed it since.

HMAC-SHA256 over the SHA-256 of the whole file with both places, signature and digest, read as zeros. The digest covers
the signature as well, so a version without signatures can still read the file.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from status_tool.errors import ConfigurationError
from status_tool.printable import safe

SIGNATURE_KEY = b"status-tool-signature"
SIGNATURE_PATTERN = re.compile(re.escape(SIGNATURE_KEY) + rb"\x18\x40([0-9a-f]{64})")
"""Pattern like `DIGEST_PATTERN` of the header: no JSON text can hold these bytes."""

# A signature that the same key made for another purpose is none of a status file.
_CONTEXT = b"status-tool status file 1\n"
_LEAST_BYTES, _MOST_BYTES = 16, 1 << 16
_MAKE_ONE = "head -c 32 /dev/urandom | base64 > FILE; chmod 600 FILE"


@dataclass(frozen=True, slots=True)
class SignKey:
    """The shared secret; it is never shown."""

    _secret: bytes = field(repr=False)

    def sign(self, digest: bytes) -> bytes:
        """Return the signature (hex) of a digest (hex)."""
        return hmac.new(self._secret, _CONTEXT + digest, hashlib.sha256).hexdigest().encode()

    def has_signed(self, digest: bytes, signature: bytes) -> bool:
        """Return True if `signature` is the signature of that digest."""
        return hmac.compare_digest(self.sign(digest), signature)


def read_key(path: Path) -> SignKey:
    """Return the key in a file: all its bytes, but for newlines at the end.

    Raises `ConfigurationError` for a file that others than its owner may read or write, or that holds no key.
    """
    name = f"--sign-key {safe(str(path))}"
    try:
        # Non-blocking: the path may be a pipe.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            # Of the open file: the path may lead to another one by now.
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise ConfigurationError(f"{name} is not a regular file: {_MAKE_ONE}")
            if state.st_mode & 0o077 or state.st_uid not in (os.geteuid(), 0):
                raise ConfigurationError(f"{name} must belong to you and be readable by you only: chmod 600 it")
            secret = file.read(_MOST_BYTES + 1).rstrip(b"\r\n")
    except OSError as error:
        raise ConfigurationError(f"cannot read {name}: {error.strerror}") from None
    if not _LEAST_BYTES <= len(secret) <= _MOST_BYTES:
        raise ConfigurationError(f"{name} holds no key of {_LEAST_BYTES} bytes to 64 KiB: {_MAKE_ONE}")
    return SignKey(secret)
