"""Files that appear whole or not at all.

Written under a temporary name in the target's own folder, synced, and renamed; until then an
older file of that name is untouched, whatever happens to the process.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from status_tool.errors import OutputError
from status_tool.printable import safe

PRIVATE = 0o600
PUBLIC = 0o644
"""Permissions of what programs of other users read; the umask takes from it."""
_NAME_MAX = 255
_BUFFER_BYTES = 1 << 20


written: list[str] = []
"""The files that the running command line has put in their places."""

changed: set[str] = set()
"""The tables of HBase that it may have changed for good."""

_asked_mode: int | None = None


def file_mode(mode: int | None) -> None:
    """Permissions of every file that this process writes from now on; None: `PRIVATE`, or as they are."""
    global _asked_mode
    _asked_mode = mode


def check_targets(*paths: str | os.PathLike[str] | None) -> None:
    """Check the files that a run was asked to write; None is one that it was not. Raises as `check_target`."""
    for path in paths:
        if path is not None:
            check_target(path)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the file that `path` stands for (symbolic links followed), without creating anything.

    Raises `OutputError` where it is plain beforehand that nothing can be written there, so that
    a long run need not fail at its end.
    """
    # `os.replace` would replace the link itself, and leave the file behind it as it was.
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise _output_error(path, error) from error
    if mode is not None and stat.S_ISDIR(mode):
        raise OutputError(f"cannot write {safe(str(path))}: it is a folder; name a file")
    if mode is not None and not stat.S_ISREG(mode):
        raise OutputError(f"cannot write {safe(str(path))}: it is not a regular file")
    folder = target.parent
    if not folder.is_dir():
        raise OutputError(f"cannot write {safe(str(path))}: there is no folder {safe(str(folder))}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write {safe(str(path))}: no permission to write in {safe(str(folder))}")
    return target


def check_folder(path: str | os.PathLike[str]) -> None:
    """Check that `make_folder` may create a folder, or that files may be written in it, without creating anything.

    Raises `OutputError` where it is plain beforehand that they cannot.
    """
    real = Path(os.path.realpath(path))
    nearest = next(one for one in (real, *real.parents) if os.path.lexists(one))
    if not nearest.is_dir():
        raise OutputError(f"cannot write into {safe(str(path))}: {safe(str(nearest))} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write into {safe(str(path))}: no permission to write in {safe(str(nearest))}")


def make_folder(path: str | os.PathLike[str]) -> None:
    """Create a folder for files of its owner, unless it is there. Raises `OutputError`."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write into {safe(str(path))}: {error.strerror or error}") from error


class AtomicFile(io.RawIOBase):
    """A binary file being written under a temporary name until `commit`.

    Closing or dropping it without `commit` removes it. Every failing write is an `OutputError`. A new file is its
    owner's alone, one that replaces another keeps the permissions of that, unless `file_mode` has said otherwise.
    """

    mode = "wb"

    def __init__(self, path: str | os.PathLike[str], mode: int = PRIVATE) -> None:
        """Create the temporary file next to `path`; `mode` is that of a new file. Raises `OutputError`."""
        super().__init__()
        self._fd = -1
        self._path = path
        self._is_begun = False
        self._target = check_target(path)
        self._temporary = _temporary_name(self._target)
        # Before the file is there: a signal may come before its number is known here.
        self._is_begun = True
        try:
            self._fd = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            self._set_mode()
        except OSError as error:
            raise _output_error(path, error) from error

    def _set_mode(self) -> None:
        if _asked_mode is not None:
            # Not by `os.open`, whose mode loses the bits of the umask.
            os.fchmod(self._fd, _asked_mode)
            return
        # Somebody has chosen the permissions of the file that is there.
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(self._fd, stat.S_IMODE(self._target.stat().st_mode))

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        """Write all of `data` (any buffer); raises `OutputError`, for instance when the disk is full."""
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        written = 0
        try:
            # `os.write` may take a part only: Linux ends each call after 0x7ffff000 bytes (write(2)).
            while written < len(view):
                written += os.write(self._fd, view[written:])
        except OSError as error:
            raise _output_error(self._path, error) from error
        return written

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes of what was written so far, from `offset`."""
        return os.pread(self._fd, size, offset)

    def size(self) -> int:
        """Return the number of bytes written so far."""
        return os.fstat(self._fd).st_size

    def patch(self, offset: int, data: bytes) -> None:
        """Replace bytes that were already written; raises `OutputError`."""
        try:
            os.pwrite(self._fd, data, offset)
        except OSError as error:
            raise _output_error(self._path, error) from error

    def commit(self) -> None:
        """Put the file in its place; raises `OutputError` and removes it where that fails."""
        try:
            # Before the rename: after a crash of the host, the name must not stand for a file without its data.
            os.fsync(self._fd)
            # The last moment to notice: the file must not replace what became a folder meanwhile.
            os.replace(self._temporary, self._target)
            # Until here, `signals.interruption` says that nothing was written.
            written.append(os.fspath(self._path))
        except OSError as error:
            self.close()
            raise _output_error(self._path, error) from error
        except BaseException:
            self.close()
            raise
        _sync_folder(self._target.parent)
        self._release()

    def close(self) -> None:
        """Give up: remove the temporary file. Does nothing after `commit`."""
        if not self.closed:
            if self._is_begun:
                with contextlib.suppress(OSError):
                    os.unlink(self._temporary)
            self._release()

    def _release(self) -> None:
        # The number goes first: after a signal in between, a second close could hit another file of that number.
        fd, self._fd = self._fd, -1
        with contextlib.suppress(OSError):
            os.close(fd)
        super().close()


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: int = PRIVATE) -> Iterator[TextIO]:
    """Give a UTF-8 text stream that becomes `path` if the block ends well, and vanishes if not.

    `mode` is that of a new file. Raises `OutputError` where the file cannot be created, written or put in place.
    """
    file = AtomicFile(path, mode)
    try:
        buffered = io.BufferedWriter(file, _BUFFER_BYTES)
        # Paths that are not UTF-8 hold lone surrogates (PEP 383), which UTF-8 cannot encode.
        text = io.TextIOWrapper(buffered, encoding="utf-8", errors="backslashreplace", newline="\n")
        yield text
        text.flush()
        file.commit()
    except BaseException:
        file.close()
        raise


def _temporary_name(target: Path) -> Path:
    suffix = f".{os.getpid()}-{secrets.token_hex(4)}.tmp"
    # NAME_MAX counts bytes, so the name is cut as bytes.
    stem = os.fsencode(target.name)[: _NAME_MAX - len(suffix) - 1]
    return target.with_name("." + os.fsdecode(stem) + suffix)


def _sync_folder(folder: Path) -> None:
    # The rename itself has happened; some file systems refuse to sync folders, which is no failure.
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _output_error(path: str | os.PathLike[str], error: OSError) -> OutputError:
    return OutputError(f"cannot write {safe(str(path))}: {error.strerror or error}")
