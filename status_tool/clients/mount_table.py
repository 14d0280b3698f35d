"""Mount tables of `viewfs://`: which path of the view leads where, by the site files (`fs.viewfs.mounttable.NAME.…`).

What Hadoop's `InodeTree` reads, but for links that are no plain path to one folder. A path belongs to the longest mount
point that it lies in, and to the fallback where it lies in none.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from urllib.parse import urlsplit

from status_tool.errors import ConfigurationError
from status_tool.vocabulary.selection import inside

SCHEME = "viewfs"
_PREFIX = "fs.viewfs.mounttable."
_DEFAULT_NAME = f"{_PREFIX}default.name.key"
_LINK = "link."
_WHOLE = ("linkFallback", "linkMergeSlash")
"""Name that stands for all paths without a link of their own: a mount point at `/`."""

Mounts = tuple[tuple[str, str], ...]
"""Paths of the view and the URLs that they lead to, in order of path."""


def view_name(site: Mapping[str, str], default_fs: str) -> str | None:
    """Return the mount table's name in `fs.defaultFS`; None if that is no view, or if no site file has its table."""
    parts = urlsplit(default_fs)
    if parts.scheme != SCHEME:
        return None
    name = parts.netloc or site.get(_DEFAULT_NAME, "").strip() or "default"
    return name if any(_of(key, name) for key in site) else None


def mount_table(site: Mapping[str, str], name: str) -> Mounts:
    """Return the mount points of a view. Raises `ConfigurationError` for links that are not read."""
    mounts = dict[str, str]()
    for key in sorted(site):
        what = _of(key, name)
        if what in ("", "homedir"):
            continue
        if what in _WHOLE:
            mounts["/"] = site[key].strip()
        elif what.startswith(f"{_LINK}/"):
            mounts[posixpath.normpath(what.removeprefix(_LINK))] = site[key].strip()
        else:
            raise ConfigurationError(
                f"{key} is set in the site files: of a mount table only link, linkFallback and linkMergeSlash are "
                "read; --webhdfs http://HOST:PORT checks one HDFS without the view"
            )
    return tuple(sorted(mounts.items()))


def _of(key: str, name: str) -> str:
    """Return the part of a property's name after this mount table's prefix; empty if it belongs to another one."""
    prefix = f"{_PREFIX}{name}."
    return key.removeprefix(prefix) if key.startswith(prefix) and key != _DEFAULT_NAME else ""


def mounts_below(mounts: Mounts, path: str) -> Mounts:
    """Return the mount points that hold files below a path of the view: the one around it, and those in it."""
    above = [mount for mount in mounts if inside(path, mount[0])]
    # Mounts are sorted, so the last of those above is the longest, which takes the path.
    return (*above[-1:], *(mount for mount in mounts if mount not in above and inside(mount[0], path)))


def seen_at(mounts: Mounts, url: str) -> tuple[str, ...]:
    """Return the paths of a view that lead to a folder, given by its URL, or into it; none for a URL of no host."""
    authority, folder = urlsplit(url).netloc, posixpath.normpath(urlsplit(url).path or "/")
    found = []
    for path, target in mounts:
        there = posixpath.normpath(urlsplit(target).path or "/")
        if not authority or urlsplit(target).netloc != authority:
            continue  # A link to `file:///` has no host either.
        if inside(there, folder):
            found.append(path)
        elif inside(folder, there):
            seen = posixpath.join(path, posixpath.relpath(folder, there))
            if mounts_below(mounts, seen)[0] == (path, target):  # no other mount point hides it
                found.append(seen)
    return tuple(found)
