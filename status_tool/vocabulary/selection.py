"""Selection of files: paths, globs, exclusions, and trees that have another path on the slave."""

from __future__ import annotations

import fnmatch
import glob
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile, zip_longest

from status_tool.errors import ConfigurationError, UsageError

TEMPORARY_NAMES = (".Trash", ".snapshot", ".staging", "_temporary", "*._COPYING_", ".distcp.tmp.*")
TEMPORARY_FOLDERS = ("/tmp",)
LOCAL = "file:"
"""The prefix of a root on a local disk; the rest is its path."""
_BLANKS = " \t\r"
_MAGIC = re.compile(r"[*?\[]")
# Possessive (`?+`, `*+`): by backtracking, `[!]` would be a bracket, of which `fnmatch` makes a plain `[`.
_PARTS = re.compile(r"\[!?+\]?+[^\]]*+\]|.", re.DOTALL)
"""The parts of a glob. A `]` that comes first in a bracket does not close it, and an open bracket is a plain `[`."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:(?<!file:)//[^/]*\Z|(?://[^/]*)?(?=/))")
"""An authority alone is the root of its HDFS. A local disk has none: `file://data` lacks a slash."""
_TARGET = re.compile("=(?=/|[A-Za-z][A-Za-z0-9+.-]*:/)")
"""Begins the slave's side of `--map-path`; a folder may be called `day=1`."""
_SYSTEM = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(?=/|\Z)")


def strip_uri(path: str) -> str:
    """Return `path` without scheme and authority, normalised: `hdfs://nn:8020/a//b/` → `/a/b`, `hdfs://nn` → `/`.

    Not by URL parsing: `#`, `?` and `%` are plain characters in HDFS paths.
    """
    found = _URI.match(path)
    bare = path[found.end() :] or "/" if found else path
    return "/" + posixpath.normpath(bare).lstrip("/") if bare.startswith("/") else bare


def system_of(url: str) -> tuple[str, str]:
    """Return the scheme and the authority (without a user) of a URL, each empty where it has none."""
    found = _SYSTEM.match(url)
    return (found[1].lower(), (found[2] or "").rpartition("@")[2]) if found else ("", "")


def plain_path(path: str) -> str:
    """Return a path without scheme and authority, normalised."""
    return "/" + posixpath.normpath(strip_uri(path)).lstrip("/")


def root_of(text: str) -> str:
    """Return a root in its stored form: a plain HDFS path, or `file:` and a local path."""
    path = as_glob(plain_path(text))
    return LOCAL + path if text.startswith(LOCAL) else path


def as_glob(text: str) -> str:
    """Return a pattern as Python's `fnmatch` has it, which does not know Hadoop's `[^…]`, but `[!…]`."""
    return text.replace("[^", "[!")


def by_system(paths: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the roots into local folders (without `file:`) and paths in HDFS."""
    roots = [root_of(path) for path in paths]
    local = tuple(root.removeprefix(LOCAL) for root in roots if root.startswith(LOCAL))
    return local, tuple(root for root in roots if not root.startswith(LOCAL))


def read_path_file(text: str, name: str) -> tuple[str, ...]:
    """Return the roots of a `-f` file as they are written: one per line, `#` comments.

    Raises `ConfigurationError` for a line that ends with a blank: without it, it may name another folder.
    """
    if text.count("\r\n") == text.count("\n"):  # A name may end with a carriage return, but not all of them do.
        text = text.replace("\r\n", "\n")
    lines = [line.lstrip(_BLANKS) for line in text.split("\n")]  # Only these: a name may hold any other line end.
    lines = [line for line in lines if line and not line.startswith("#")]
    for line in lines:
        if line.endswith(tuple(_BLANKS)):
            raise ConfigurationError(
                f"-f {name}: {line!r} ends with a blank, which a name may have: remove it, or add a slash if it is"
                " meant"
            )
        if not line.startswith(("/", "hdfs:", "webhdfs:", "viewfs:", LOCAL)):
            raise ConfigurationError(f"-f {name}: {line!r} is not an absolute HDFS path")
    if not lines:
        raise ConfigurationError(f"-f {name}: no path in it")
    return tuple(lines)


def is_glob(path: str) -> bool:
    """Return True if a root is a pattern: `*`, `?` and `[…]`, none of which crosses a `/`."""
    return bool(_MAGIC.search(path))


def plain_folder(root: str) -> str:
    """Return the folder that holds all matches of a glob, by its parts before the first pattern, or a plain root."""
    return "/" + "/".join(takewhile(lambda part: not is_glob(part), root.strip("/").split("/")))


def _segments(path: str) -> list[str]:
    return [segment for segment in path.strip("/").split("/") if segment]


def _may_meet(glob: str, crossing: str) -> bool:
    """Return True if a path may match a glob and one whose `*` crosses a `/`; a bracket is taken for a `?`."""
    ours, theirs = ([*_PARTS.findall(one), ""] for one in (glob, crossing))
    waiting, seen = [(0, 0)], set[tuple[int, int]]()
    while waiting:
        at = our_at, their_at = waiting.pop()
        our, their = ours[our_at], theirs[their_at]
        if not our and not their:
            return True
        if at in seen:
            continue
        seen.add(at)
        if our == "*":
            waiting.append((our_at + 1, their_at))
        if their == "*":
            waiting.append((our_at, their_at + 1))
        if our and their and (our == their or _is_wild(their) or (_is_wild(our) and their != "/")):
            waiting.append((our_at + (our != "*"), their_at + (their != "*")))
    return False


def _is_wild(part: str) -> bool:
    return part in ("*", "?") or len(part) > 1


@lru_cache
def _matching(globs: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    """Return what matches any of the globs. `fnmatch` keeps 256 of them, and compiles others for each file anew."""
    return re.compile("|".join(map(fnmatch.translate, globs)) or "(?!)").match


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Folders, names and patterns that are skipped, unless a path to check lies inside."""

    folders: tuple[str, ...] = TEMPORARY_FOLDERS
    names: tuple[str, ...] = TEMPORARY_NAMES
    patterns: tuple[str, ...] = ()
    """`--exclude`: matched against the whole path; here `*` crosses a `/`."""

    def leave_out(self, path: str) -> bool:
        """Return True if a file or folder is left out."""
        name = posixpath.basename(path)
        return (
            path in self.folders
            or _matching(self.names)(name) is not None
            or _matching(self.patterns)(path) is not None
        )

    def hide(self, path: str, depth: int) -> bool:
        """Return True if a path, or a folder above it that is deeper than `depth`, is left out."""
        parts = path.strip("/").split("/")
        return any(self.leave_out("/" + "/".join(parts[:end])) for end in range(depth + 1, len(parts) + 1))

    def hide_match(self, path: str, root: str) -> bool:
        """Return True if a glob's match, or a folder above it that the glob does not name in plain, is left out."""
        segments, parts = _segments(root), _segments(path)
        # A folder above all matches ends before them.
        matched = (end for end, segment in enumerate(segments[: len(parts)], 1) if is_glob(segment))
        return any(self.leave_out("/" + "/".join(parts[:end])) for end in matched)

    def may_hide(self, path: str, root: str) -> bool:
        """Return True if the listing of a root may leave out what a path, glob or not, stands for as a root itself.

        A glob matches nothing that is left out, but names in plain what follows it: that may be left out.
        """
        segments, parts = root.strip("/").split("/") if root.strip("/") else [], path.strip("/").split("/")
        left_out = (*self.folders, *self.patterns)
        for end, part in enumerate(parts, 1):
            if end > len(segments) or is_glob(segments[end - 1]):
                named = "/" + "/".join(parts[:end])
                is_of_glob = is_glob(named) and not is_glob(part)
                if self.leave_out(named) or (is_of_glob and any(_may_meet(named, other) for other in left_out)):
                    return True
        return False

    def also(self, globs: Iterable[str]) -> Exclusions:
        """Return these exclusions with those of `--exclude`.

        A pattern with a `/` is matched against whole paths, any other against names.
        """
        globs = tuple(map(as_glob, globs))
        names = tuple(glob for glob in globs if "/" not in glob)
        paths = tuple(plain_path(glob) for glob in globs if "/" in glob)
        return Exclusions(self.folders, (*self.names, *names), (*self.patterns, *paths))


def outermost(
    roots: Sequence[str],
    exclusions: Exclusions = Exclusions(),
    is_apart: Callable[[str, str], bool] = lambda root, other: False,
) -> list[str]:
    """Return the roots that the listing of no other root reaches, so that each file is listed once.

    `is_apart` tells that it does not reach a root inside another one, for a reason besides exclusions.
    """

    def reached(root: str, other: str) -> bool:
        return inside(root, other) and not exclusions.hide(root, depth_of(other)) and not is_apart(root, other)

    kept: list[str] = []
    # A folder sorts before all that lies inside.
    for root in sorted(set(roots)):
        if not any(reached(root, other) for other in kept):
            kept.append(root)
    return kept


def depth_of(path: str) -> int:
    """Return the number of a path's parts; 0 for the root folder."""
    return len(path.strip("/").split("/")) if path.strip("/") else 0


def inside(path: str, root: str) -> bool:
    """Return True if a path is a root or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def overlap(path: str, root: str) -> str | None:
    """Return a root for all that is below both of two roots, globs or not; None if nothing can be.

    Where each of them has another pattern, it has that of `root`, which may match more than `path` does.
    """
    if not (is_glob(path) or is_glob(root)):  # Of thousands on either side each is compared with each.
        return root if inside(root, path) else path if inside(path, root) else None
    parts = list[str]()
    for asked, named in zip_longest(_segments(path), _segments(root)):
        both = _common(asked, named) if asked and named else asked or named
        if both is None:
            return None
        parts.append(both)
    return "/" + "/".join(parts)


def _common(asked: str, named: str) -> str | None:
    """Return a pattern for the names that match both of two."""
    if asked == named or named == "*":
        return asked
    if not is_glob(asked) or not is_glob(named):
        plain, pattern = (named, asked) if is_glob(asked) else (asked, named)
        return plain if fnmatch.fnmatchcase(plain, pattern) else None
    return named if asked == "*" or _may_meet(asked, named) else None


def sides_of(option: str) -> tuple[str, str]:
    """Return both sides of a `--map-path` as they are written; the slave's is empty if there is none."""
    master, *rest = _TARGET.split(option, maxsplit=1)
    return master, "".join(rest)


def _leads(root: str, tree: str) -> Iterator[str]:
    """Yield what is left of a root below a tree that it holds, or that a glob may lead into; nothing for any other."""
    asked, named = _segments(root), _segments(tree)
    # `map` ends with the shorter of both: a tree may lie below the root, and what a glob matches below the tree.
    if (is_glob(root) or len(named) >= len(asked)) and all(map(fnmatch.fnmatchcase, named, asked)):
        yield "".join(f"/{segment}" for segment in asked[len(named) :])


@dataclass(frozen=True, slots=True)
class PathMap:
    """`--map-path MASTER=SLAVE`: where trees of the master are on the slave. The longest prefix decides."""

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, options: Iterable[str]) -> PathMap:
        """Parse the two paths. Raises `UsageError` unless both are absolute and no tree is mapped twice."""
        pairs = []
        for option in options:
            master, slave = sides_of(option)
            if not strip_uri(master).startswith("/") or not strip_uri(slave).startswith("/"):
                raise UsageError(f"--map-path {option!r}: expected MASTER_PATH=SLAVE_PATH, both absolute")
            # Plain on both sides: a folder of the slave may have a glob's characters in its name.
            pairs.append((plain_path(master), (LOCAL if slave.startswith(LOCAL) else "") + plain_path(slave)))
        for side in zip(*pairs, strict=True):
            if len(set(side)) != len(side):
                raise UsageError("--map-path: a tree is mapped twice")
        return cls(tuple(sorted(pairs, key=lambda pair: -len(pair[0]))))

    @property
    def leads_to_disk(self) -> bool:
        """Return True if a tree is a local folder on the slave."""
        return any(slave.startswith(LOCAL) for _, slave in self.pairs)

    def unused(self, roots: Sequence[str]) -> tuple[str, ...]:
        """Return the master's trees that hold no root, and lie below none."""
        return tuple(
            tree
            for tree, _ in self.pairs
            if not any(inside(root, tree) or next(_leads(root, tree), None) is not None for root in roots)
        )

    def slave_roots(self, roots: Sequence[str]) -> tuple[str, ...]:
        """Return the slave's roots for the master's."""
        escaped = PathMap(tuple((master, glob.escape(slave)) for master, slave in self.pairs))
        below = [
            slave.rstrip("/") + rest or "/"
            for root in roots
            for master, slave in escaped.pairs
            for rest in _leads(root, master)
        ]
        return tuple(dict.fromkeys([*(escaped.to_slave(root) for root in roots), *below]))

    def to_master(self, path: str) -> str | None:
        """Return the path on the master that a path of the slave is the copy of; None: it is none.

        The longest prefix of the slave decides. A tree of the master within that one has a place of its own on the
        slave: what lies here is no copy of it. The slave's own files under a path that is mapped elsewhere are none.
        """
        for master, slave in sorted(self.pairs, key=lambda pair: -len(pair[1])):
            prefix = slave.removeprefix(LOCAL).rstrip("/")
            moved = master.rstrip("/") + path[len(prefix) :] or "/"
            within = (other for other, _ in self.pairs if other != master and inside(other, master))
            if inside(path, prefix) and not any(inside(moved, other) for other in within):
                return moved
        return None if any(inside(path, master) for master, _ in self.pairs) else path

    def to_slave(self, path: str) -> str:
        """Return the slave's path (of a disk with `file:`) for a path of the master."""
        for master, slave in self.pairs:
            if inside(path, master):
                return slave.rstrip("/") + path[len(master.rstrip("/")) :] or "/"
        return path


@dataclass(frozen=True, slots=True)
class ChosenFiles:
    """The files of a side that a check compares: those that a listing of the roots finds."""

    within: tuple[str, ...] = ()
    """Roots beside which no file is compared (`-f`); none: all are."""
    roots: tuple[str, ...] = ()
    """What was listed. A root inside what is left out is compared nonetheless."""
    left_out: tuple[str, ...] = ()
    """Globs of `--exclude`."""
    path_map: PathMap = PathMap()
    """The slave's, whose files are compared under the master's paths."""

    @property
    def are_all(self) -> bool:
        """Return True if every file is compared under its own path."""
        return not (self.within or self.left_out or self.path_map.pairs)


class ChoosingFiles:
    """The rule of `ChosenFiles`, for one file after another: it remembers what it has found out of folders."""

    def __init__(self, chosen: ChosenFiles) -> None:
        self._chosen = chosen
        self._within, self._roots = _Roots(chosen.within), _Roots(chosen.roots)
        self._exclusions = Exclusions((), ()).also(chosen.left_out)
        self._is_hidden = lru_cache(_KNOWN_FOLDERS)(lambda folder: folder != "/" and self._exclusions.hide(folder, 0))

    def path_of(self, path: str, *, is_unlisted: bool = False) -> str | None:
        """Return the path under which a file is compared; None: it is not.

        `is_unlisted`: it is a folder that could not be listed. Above a root it stays: nobody knows what it holds of the
        root's.
        """
        known = self._chosen.path_map.to_master(path)
        if known is None or not (self._is_within(known, is_unlisted) and self._is_listed(known, is_unlisted)):
            return None
        return known

    def _is_within(self, path: str, is_unlisted: bool) -> bool:
        return not self._chosen.within or next(self._within.of(path, is_unlisted), None) is not None

    def _is_listed(self, path: str, is_unlisted: bool) -> bool:
        """Return True unless the listing of each root that a file is in leaves it out."""
        exclusions = self._exclusions
        if not self._chosen.left_out or not (exclusions.leave_out(path) or self._is_hidden(posixpath.dirname(path))):
            return True
        roots = self._roots.of(path, is_unlisted)
        return any(not (exclusions.hide(path, depth_of(root)) or exclusions.hide_match(path, root)) for root in roots)


class _Roots:
    """Roots. A path asks thousands of plain ones by its own folders."""

    def __init__(self, roots: Sequence[str]) -> None:
        globs = {root for root in roots if is_glob(root)}
        self._plain = set(roots) - globs
        self._above = {folder: root for root in self._plain for folder in _upward(root) if folder != root}
        self._globs = {root: [re.compile(fnmatch.translate(one)).match for one in _segments(root)] for root in globs}

    def of(self, path: str, is_unlisted: bool) -> Iterator[str]:
        """Yield the roots that hold a path, or that a folder which could not be listed may hold."""
        yield from self._plain.intersection(_upward(path))
        named = _segments(path) if self._globs else []
        for root, asked in self._globs.items():
            # `zip` ends with the shorter of both: then the folder is above the root.
            alike = all(match(one) for match, one in zip(asked, named, strict=False))
            if alike and (is_unlisted or len(asked) <= len(named)):
                yield root
        if is_unlisted and path in self._above:
            yield self._above[path]


def _upward(path: str) -> Iterator[str]:
    """Yield a path, and the folders that hold it."""
    above = posixpath.dirname(path)
    while above != path:
        yield path
        path, above = above, posixpath.dirname(above)
    yield "/"


_KNOWN_FOLDERS = 1_000
"""Files follow one another by folder."""
