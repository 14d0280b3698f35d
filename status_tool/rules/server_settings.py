"""The settings of region servers that can drop or change cells without a trace in the streams.

The trackers record the settings (docs/formats.md, `q.settings`); what they mean is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from status_tool.printable import few
from status_tool.rules.segments import is_later, latest
from status_tool.rules.words import NO_WORD, Word
from status_tool.vocabulary.details import is_text, map_of, object_in
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.names import CODEC_KEY, DROPS_LOADS_KEY, PEER_STORAGE_KEY
from status_tool.vocabulary.schema import Row

_OWN_CODE = {
    MASTER: (
        "hbase.replication.source.service",
        "replication.replicationsource.implementation",
        "hbase.hregion.impl",
        "unreadable",
    ),
    SLAVE: (
        "hbase.replication.sink.service",
        "hbase.replication.sink.walentrysinkfilter",
        "hbase.hregion.impl",
        "hbase.hstore.engine.class",
        "hbase.hstore.defaultengine.compactor.class",
        "hbase.hstore.defaultengine.storeflusher.class",
        "hbase.hstore.mobengine.compactor.class",
        "hbase.regionserver.memstore.class",
        "hbase.regionserver.hlog.enabled",
        "hbase.wal.provider",
        "hbase.wal.regiongrouping.delegate.provider",
        "unreadable",
    ),
}
"""By side, what decides which entries there are, which of their cells are shipped and applied, and what stays."""
_COPROCESSORS = (
    "hbase.coprocessor.wal.classes",
    "hbase.coprocessor.regionserver.classes",
    "hbase.coprocessor.region.classes",
    "hbase.coprocessor.user.region.classes",
)
_SKIPS_ERRORS = ("hbase.hlog.split.skip.errors", "hbase.hregion.edits.replay.skip.errors", "hbase.skip.errors")
_KEEPS_TAGS = "WithTags"
_LABELS = "labels"
"""Key of servers with HBase's VisibilityController. Where it is missing, a delete takes away cells of other labels."""
_LABELS_BY_NAME = "by name"
"""Its value with VisibilityReplication as well: without that a label is shipped as its number in the master's
hbase:labels, and the slave takes it for the label to which it has given that number."""
SINGLE_ENTRIES = "hbase.replicationtable.unstamped.entries"
"""Setting of a slave's tracker, which then records entries without a stamp one by one."""
ALL_ENTRIES = "all"
"""Value of this setting with which it records those with a stamp one by one as well."""


@dataclass(frozen=True, slots=True)
class _Server:
    name: str
    live: bool
    settings: Mapping[str, str] | None
    """None: the tracker did not record them."""
    until_ms: int | None
    """Until when it may have written or applied; None: not known, or it lives."""

    def has_ended_by(self, moment_ms: int | None) -> bool:
        """Return True if it is known to have ended by a time."""
        return moment_ms is not None and not is_later(self.until_ms, moment_ms)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Consequences of both sides' region server settings for a run."""

    findings: tuple[Finding, ...] = ()
    notices: tuple[str, ...] = ()
    drops_loads: bool = False
    """True if markers of bulk loads may have been dropped on the way."""
    keeps_tags: bool = False
    """True if all servers are known to ship and to take cells with their tags, and to heed labels, or none does."""


def judge_settings(
    ours: Iterable[Row],
    theirs: Iterable[Row],
    since_ms: int | None,
    peer_codec: str | None = None,
    word: Word = NO_WORD,
) -> ServerSettings:
    """Judge both sides' `server` rows. What servers that are gone did by `since_ms`, or by the word, is accepted.

    `peer_codec`: the codec in the peer's own configuration, which takes the place of the master's.
    """
    ours = list(ours)
    sides = {MASTER: _servers(ours), SLAVE: _servers(theirs)}
    counted = {
        # A server of which nobody knows the end counts as later than any time.
        side: [one for one in servers if one.live or not (one.has_ended_by(since_ms) or word.is_for_all_of(side))]
        for side, servers in sides.items()
    }
    drops = [server for having in _having(counted[MASTER], DROPS_LOADS_KEY).values() for server in having]
    return ServerSettings(
        (*_own_code(counted, word), *(Finding("peers-elsewhere", note=where) for where in peers_elsewhere(ours))),
        (*_notices(counted), *([loads_notice(f"on the master ({_names(drops)})")] if drops else [])),
        bool(drops),
        _keeps_tags([server for servers in counted.values() for server in servers])
        and _ships_labels(counted[MASTER])
        and (peer_codec is None or peer_codec.endswith(_KEEPS_TAGS)),
    )


def _servers(rows: Iterable[Row]) -> list[_Server]:
    """Return one server per name: a server's two rows record the same settings."""
    found: dict[str, _Server] = {}
    for row in sorted(rows, key=lambda row: str(row.get("role"))):
        server = _Server(
            str(row.get("server")),
            row.get("live") is not False,
            _settings(row.get("detail")),
            latest(row.get("final_ms"), row.get("gone_ms")),
        )
        if server.name not in found or found[server.name].settings is None:
            found[server.name] = server
    return list(found.values())


def _settings(detail: str | None) -> Mapping[str, str] | None:
    # `origins` tells of a detail that cannot be parsed.
    settings = (object_in(detail) or {}).get("settings")
    if settings is None:
        return None
    return settings if map_of(is_text)(settings) else {"unreadable": "what the tracker wrote"}


def keeps_single_entries(detail: str | None) -> bool:
    """Return True if this detail of a `server` row says that the server records entries without a stamp one by one."""
    return (_settings(detail) or {}).get(SINGLE_ENTRIES) in ("true", ALL_ENTRIES)


def keeps_all_entries(detail: str | None) -> bool:
    """Return True if this detail of a `server` row says that the server records every entry by itself."""
    return (_settings(detail) or {}).get(SINGLE_ENTRIES) == ALL_ENTRIES


def lacking_all_entries(rows: Iterable[Row]) -> tuple[str, int | None]:
    """Return the slave's live servers that do not record every entry by itself, empty for none; and until when others
    may have applied entries so, None for never.
    """
    lacking = [one for one in _servers(rows) if (one.settings or {}).get(SINGLE_ENTRIES) != ALL_ENTRIES]
    live = [one for one in lacking if one.live or one.until_ms is None]
    return (_names(live) if live else ""), latest(*(one.until_ms for one in lacking))


def has_own_code(detail: str | None) -> bool:
    """Return True if this detail of a `server` row tells of the server's past what `judge_settings` has to know."""
    settings = _settings(detail) or {}
    return any(key in settings for keys in (*_OWN_CODE.values(), (DROPS_LOADS_KEY,)) for key in keys)


def _having(servers: list[_Server], key: str) -> dict[str, list[_Server]]:
    """Return the servers that have the setting, by value."""
    having: dict[str, list[_Server]] = {}
    for server in servers:
        value = (server.settings or {}).get(key)
        if value:
            having.setdefault(value, []).append(server)
    return having


def _own_code(counted: Mapping[str, list[_Server]], word: Word) -> Iterator[Finding]:
    for side, keys in _OWN_CODE.items():
        for key in keys:
            for value, servers in sorted(_having(counted[side], key).items()):
                ends = [server.until_ms for server in servers]
                until_ms = None if any(s.live for s in servers) or None in ends else latest(*ends)
                # No time that a check takes covers what ended later on the slave: the advice for all says what does.
                if side == SLAVE and is_later(until_ms, word.known_until_ms):
                    until_ms = None
                where = f"on the {side} {key} is {value} on {_names(servers)}"
                yield Finding("own-code", note=where, written_to_ms=until_ms)


def peers_elsewhere(rows: Iterable[Row]) -> Iterator[str]:
    """Yield, in words, where a side's `server` rows show that live servers have peers that the tool does not read."""
    # A server that is gone recorded where the peers were then, which tells nothing of those in force now.
    for value, having in sorted(_having([one for one in _servers(rows) if one.live], PEER_STORAGE_KEY).items()):
        yield f"{PEER_STORAGE_KEY} is {value} on {_names(having)}"


def _notices(counted: Mapping[str, list[_Server]]) -> Iterator[str]:
    for side, servers in counted.items():
        found = [
            f"{key}: {value} ({_names(having)})"
            for key in _COPROCESSORS
            for value, having in sorted(_having(servers, key).items())
        ]
        if found:
            yield (
                f"coprocessors that may change or drop cells without a trace in the streams run on the {side}'s region"
                f" servers: {'; '.join(found)}. `status-tool rows` and VerifyReplication compare the rows themselves"
            )
    for key in _SKIPS_ERRORS:
        having = [server for servers in _having(counted[SLAVE], key).values() for server in servers]
        if having:
            yield f"{key} is true on the slave ({_names(having)}): a crash there may lose applied cells"


def loads_notice(where: str) -> str:
    """Return the notice about a source that may drop the markers of bulk loads; `where` that is configured."""
    return (
        f"{DROPS_LOADS_KEY} is true {where}: it drops the markers of bulk loads that are shipped beside a family that"
        " neither side has, so no bulk load counts as shipped"
    )


def _keeps_tags(servers: list[_Server]) -> bool:
    """Return True if all live servers reported the codec that keeps tags, and no server that has gone another one.

    A label's tag tells nothing where only some of them heed labels.
    """
    if len({bool((server.settings or {}).get(_LABELS)) for server in servers if server.live}) > 1:
        return False
    codecs = [(server.live, (server.settings or {}).get(CODEC_KEY)) for server in servers]
    is_known = any(live for live, _ in codecs) and (True, None) not in codecs
    # A server names the codecs that it had before, too.
    return is_known and all(name.endswith(_KEEPS_TAGS) for _, codec in codecs if codec for name in codec.split(", "))


def _ships_labels(servers: list[_Server]) -> bool:
    """Return True if no server of the master heeds labels, or each ships them by their names."""
    # A server names the values that it had before, too.
    known = {value for server in servers if (value := (server.settings or {}).get(_LABELS))}
    return known <= {_LABELS_BY_NAME}


def _names(servers: list[_Server]) -> str:
    return few(sorted(server.name for server in servers), 1)
