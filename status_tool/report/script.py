"""`--repair-script`: one CopyTable per table, shown before it is run, and the checks that prove the repair."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from status_tool.explain.advice import CONTENTS
from status_tool.printable import counted, few, iso, safe
from status_tool.report.text import MAX_LISTED_NAMES
from status_tool.vocabulary.outcome import Outcome, TableRepair

# Without `set -e`: a copy that fails must not keep the other tables from theirs.
_HEAD = r"""#!/usr/bin/env bash
# Repairs of one check by status-tool: copies what is missing from the master to the slave.
#
#   bash {name}              show what would be run, and run nothing
#   bash {name} --run        copy what waiting cannot fix
#   bash {name} --run --all  copy what may still arrive by itself, too
#
# Run it on the master, as a user who may read the tables there, with `hbase` on the PATH.
# One command per table. CopyTable writes the same cells with the same timestamps again:
# running this twice, or after an interruption, does no harm.
set -u
run=no all=no failed=0 left=0
for argument in "$@"; do
  case "$argument" in
    --run) run=yes ;;
    --all) all=yes ;;
    *) echo "usage: bash $0 [--run [--all]]" >&2; exit 2 ;;
  esac
done

# repair TABLE WHEN COMMAND...: WHEN is `stuck` or `waiting`
repair() {{
  local table=$1 when=$2; shift 2
  if [ "$when" = waiting ] && [ "$all" = no ]; then
    left=$((left + 1))
    echo "$table: may still arrive by itself; check again with --wait, or give --all"
  elif [ "$run" = no ]; then
    echo "$table: would run:"; printf ' %q' "$@"; echo
  elif "$@"; then
    echo "$table: copied"
  else
    echo "$table: FAILED" >&2; failed=1
  fi
}}
"""


def repair_script(outcome: Outcome, name: str) -> Iterator[str]:
    """Yield the lines of the script; `name` is the file's, for its own help."""
    yield from (f"{line}\n" for line in _lines(outcome, name))


def _lines(outcome: Outcome, name: str) -> Iterator[str]:
    repairs = outcome.overview.repairs
    yield _HEAD.format(name=safe(name))
    yield f"# Master {safe(outcome.master_cluster_id)}, slave {safe(outcome.slave_cluster_id)},"
    yield f"# cut {iso(outcome.cut_ms)}; {counted(len(repairs), 'table')}"
    for repair in repairs:
        yield from _repair(repair)
    if not repairs:
        yield "echo 'There is nothing that copying a table would repair.'"
    else:
        yield ""
        yield from _proof(repairs)
    # No copy repairs these: rows that are left over have to go as well.
    if compared := sorted({one.table for one in outcome.overview.groups if one.table and one.code in CONTENTS}):
        names = few([safe(table) for table in compared], MAX_LISTED_NAMES)
        yield ""
        yield f"echo {_word(f'To be compared by HashTable and SyncTable, as the check says: {names}')}"
    yield ""
    yield 'exit "$failed"'


def _repair(repair: TableRepair) -> Iterator[str]:
    yield ""
    # `safe` leaves no line break: a name of a forged FILE cannot end the comment and begin a command.
    yield f"# {safe(repair.table)} ({', '.join(repair.reasons)})"
    for first in repair.first:
        yield f"# Before that: {safe(first)}"
    when = "stuck" if repair.stuck else "waiting"
    # Quoted anew: `_word` also escapes what a terminal would not show.
    yield " ".join(("repair", _word(repair.table), when, *map(_word, shlex.split(repair.commands.copy_table))))


def _proof(repairs: Sequence[TableRepair]) -> Iterator[str]:
    # All of it as comments: the script runs on the master, and SyncTable has to run on the slave.
    yield "# --- The check that proves the repair --------------------------------------------------"
    yield "# What has been copied leaves no trace in the streams, so it is compared row by row. The check with --rows"
    yield "# does so by digests (DIR: the master's configuration); one with --since takes your word for it. The same by"
    yield "# Hadoop's own tools, for both to agree:"
    yield "# HashTable on the master, then SyncTable --dryrun on the slave, whose counters HASHES_NOT_MATCHED,"
    yield "# SOURCEMISSINGROWS and TARGETMISSINGROWS must be absent or 0. (SyncTable without --dryrun repairs what"
    yield "# differs and deletes what only the slave has, unless --doDeletes=false; leave --starttime and --endtime out"
    yield "# of HashTable where clients set timestamps of their own.)"
    for repair in repairs:
        yield "#"
        yield f"# {safe(repair.table)}"
        yield f"#   master: {safe(repair.commands.hash_table)}"
        yield f"#   slave:  {safe(repair.dry_run)}"
        yield f"#   slave:  {safe(repair.check)}"
    yield 'if [ "$run" = yes ] && [ "$failed" = 0 ]; then'
    yield '  if [ "$left" = 0 ]; then told="Copied"; else told="NOT copied, as they may still arrive: $left"; fi'
    yield '  echo "$told. The checks that prove it are at the end of $0."'
    yield "fi"


def _word(word: str) -> str:
    r"""Return a word quoted for bash; non-printable characters become escapes that bash reads back (`$'\x1b'`)."""
    if word.isprintable():
        return shlex.quote(word)
    parts = []
    for char in word:
        if char in "\\'":
            parts.append("\\" + char)
        elif char.isprintable():
            parts.append(char)
        else:
            # A name that is not UTF-8 holds its bytes as lone surrogates (PEP 383).
            parts.extend(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
    return "$'" + "".join(parts) + "'"
