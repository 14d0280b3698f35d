"""Selection of files: paths, globs, exclusions, and trees that have another path on the slave."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from status_tool.errors import ConfigurationError, UsageError

TEMPORARY_NAMES = (".Trash", ".snapshot", ".staging", "_temporary", "*._COPYING_", ".distcp.tmp.*")
TEMPORARY_FOLDERS = ("/tmp",)
LOCAL = "file:"
"""The prefix of a root on a local disk; the rest is its path."""
_END = "(?!.)"
"""The end of a name, which `$` takes to be before a last line end."""
_MAGIC = re.compile(r"[*?\[]")
# Possessive (`?+`, `*+`): by backtracking, `[!]` would be a bracket, of which `fnmatch` makes a plain `[`.
_PARTS = re.compile(r"\[!?+\]?+[^\]]*+\]|.", re.DOTALL)
"""The parts of a glob. A `]` that comes first in a bracket does not close it, and an open bracket is a plain `[`."""
_NOTHING = r"[^\s\S]"

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
    """Return the roots of a `-f` file as they are written: one per line, `#` comments."""
    lines = [line.strip(" \t\r") for line in text.split("\n")]  # Only these: a name may hold any other line end.
    lines = [line for line in lines if line and not line.startswith("#")]
    for line in lines:
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


def glob_regex(path: str, end: str = _END) -> str:
    """Return a regular expression (Python's and Java's) for a root, glob or not, and everything below it.

    RE2 cannot look ahead, and needs `$` for `end`, which is exact there.
    """
    return f"(?s)^{_folders_regex(_segments(path))}(?:/.*)?{end}"


def above_regex(path: str) -> str:
    """Return a regular expression (Python's and Java's) for the folders above a root, glob or not."""
    above = ""
    for segment in reversed(_segments(path)[:-1]):
        above = f"/{_segment_regex(segment)}" + (f"(?:{above})?" if above else "")
    return f"(?s)^(?:/|{above or '/'}){_END}"


def _segments(path: str) -> list[str]:
    return [segment for segment in path.strip("/").split("/") if segment]


def _folders_regex(segments: Sequence[str]) -> str:
    return "".join(f"/{_segment_regex(segment)}" for segment in segments)


def _segment_regex(segment: str) -> str:
    return "".join(_part_regex(part) for part in _PARTS.findall(segment))


def _part_regex(part: str, *, crossing: bool = False) -> str:
    """Return the regular expression (Python's, Java's and RE2's) of a glob's part; `crossing`: it may match a `/`."""
    if part == "*":
        return ".*" if crossing else "[^/]*"
    if part == "?":
        return "." if crossing else "[^/]"
    if len(part) > 1:
        return _bracket_regex(part, crossing)
    return part if part.isalnum() or part in "_-" else f"\\{part}" if part.isascii() else part


def _bracket_regex(bracket: str, crossing: bool) -> str:
    """Return the regular expression for a bracket. `fnmatch`, by which files are listed, decides what is in it."""
    python = fnmatch.translate(bracket)[len("(?s:") : -len(r")\Z")]
    if not python.startswith("["):  # of empty ranges alone, such as [z-a] and [!z-a]
        return _part_regex("?", crossing=crossing) if python == "." else _NOTHING
    negated = python.startswith("[^")
    found = re.findall(r"(\\.|.)(?:-(\\.|.))?", python[2 if negated else 1 : -1], re.DOTALL)
    ranges = [(low[-1], (high or low)[-1]) for low, high in found]
    if not crossing:
        ranges = [*ranges, ("/", "/")] if negated else [one for each in ranges for one in _without_slash(*each)]
    inner = "".join(_escaped(low) + (f"-{_escaped(high)}" if high != low else "") for low, high in ranges)
    return f"[{'^' * negated}{inner}]" if inner else _NOTHING


def _without_slash(low: str, high: str) -> list[tuple[str, str]]:
    """Return a range of characters as ranges that lack the `/`."""
    return [(low, high)] if not low <= "/" <= high else [one for one in ((low, "."), ("0", high)) if one[0] <= one[1]]


def _escaped(character: str) -> str:
    # `&&` intersects classes in Java. Python reserves `--`, `&&`, `~~` and `||` in them (FutureWarning).
    return f"\\{character}" if character in "\\[]^-&~|" else character


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
            or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.names)
            or any(fnmatch.fnmatchcase(path, pattern) for pattern in self.patterns)
        )

    def hide(self, path: str, depth: int) -> bool:
        """Return True if a path, or a folder above it that is deeper than `depth`, is left out."""
        parts = path.strip("/").split("/")
        return any(self.leave_out("/" + "/".join(parts[:end])) for end in range(depth + 1, len(parts) + 1))

    def hide_match(self, path: str, root: str) -> bool:
        """Return True if a glob's match, or a folder above it that the glob does not name in plain, is left out."""
        segments, parts = root.strip("/").split("/"), path.strip("/").split("/")
        matched = (end for end, segment in enumerate(segments, 1) if is_glob(segment))
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


def exclusion_regexes(globs: Iterable[str]) -> list[str]:
    """Return regular expressions (Python's and Java's) for whole paths that `--exclude` leaves out.

    As `Exclusions.also`: a folder that is left out takes all below it along.
    """
    return [f"(?s)^{regex}(?:/.*)?{_END}" for regex in map(_excluded_regex, globs)]


def _excluded_regex(glob: str) -> str:
    glob = as_glob(glob)
    if "/" not in glob:
        return f".*/{_segment_regex(glob)}"
    return "".join(_part_regex(part, crossing=True) for part in _PARTS.findall(plain_path(glob)))


@dataclass(frozen=True, slots=True)
class NamedInside:
    """A root that lies inside what `--exclude` leaves out. It is checked nonetheless."""

    files: str
    """A regular expression for all that the root stands for."""
    left_out: tuple[str, ...]
    """And for what is left out of that: exclusions that match below the root, or the match of a glob in it."""
    above: str
    """And for the folders above the root."""


def named_inside(roots: Iterable[str], globs: Sequence[str]) -> tuple[NamedInside, ...]:
    """Return the roots that lie, or may lie, inside what `--exclude` leaves out."""
    regexes = exclusion_regexes(globs)
    found = (root for root in roots if is_glob(root) or any(re.match(regex, root) for regex in regexes))
    if not globs:
        return ()
    return tuple(NamedInside(glob_regex(root), tuple(_left_out(root, globs)), above_regex(root)) for root in found)


def _left_out(root: str, globs: Iterable[str]) -> Iterator[str]:
    """Yield the regular expressions of `NamedInside.left_out`.

    Group 1 is the rest of a path after the root, or after the match of a glob in it. It tells where the exclusion's own
    match ends: below the root, if what follows is shorter than the rest; at the glob's match, if it is the rest.
    """
    segments = _segments(root)
    for excluded in map(_excluded_regex, globs):
        yield f"(?s)^(?={_folders_regex(segments)}(/.*)){excluded}(?!.*\\1{_END})(/.*)?{_END}"
        for end, segment in enumerate(segments, 1):
            if is_glob(segment):
                yield f"(?s)^(?={_folders_regex(segments[:end])}((?:/.*)?){_END}){excluded}\\1{_END}"


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
            pairs.append((plain_path(master), root_of(slave)))
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
        """Return the slave's paths of the master's roots."""
        below = [
            slave.rstrip("/") + rest or "/"
            for root in roots
            for master, slave in self.pairs
            for rest in _leads(root, master)
        ]
        return tuple(dict.fromkeys([*(self.to_slave(root) for root in roots), *below]))

    def to_slave(self, path: str) -> str:
        """Return the slave's path (a root) for a path of the master."""
        for master, slave in self.pairs:
            if inside(path, master):
                return slave.rstrip("/") + path[len(master.rstrip("/")) :] or "/"
        return path
