"""Status files: what goes in comes out, and what is not one is refused with one line."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from status_tool.errors import OutputError, StatusFileError
from status_tool.runs.answer import Comparison, always
from status_tool.runs.check import Check
from status_tool.runs.master_side import MasterSide
from status_tool.status_file import writer as writer_module
from status_tool.status_file.footer import _CHECKS, DIGEST_KEY, DIGEST_PATTERN, HEADER_KEY, NO_DIGEST, encode_header
from status_tool.status_file.reader import open_status
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.schema import KINDS, STATUS_SCHEMA
from status_tool.vocabulary.scope import Scope
from tests.status_files import FILE, HEADER, SERVER, STREAM, batch, write
from tests.status_files import rows_of as read


def read_header(path: Path) -> Header:
    with open_status(path) as status:
        return status.header


def resealed(path: Path, data: bytes) -> Path:
    """Write `data` with a digest that fits, as an attacker or a bug in a writer could."""
    found = DIGEST_PATTERN.search(data)
    assert found
    start = found.start(1)
    blank = data[:start] + NO_DIGEST + data[start + 64 :]
    digest = hashlib.sha256(blank).hexdigest().encode()
    path.write_bytes(blank[:start] + digest + blank[start + 64 :])
    return path


def forged(path: Path, document: object, table: pa.Table | None = None) -> Path:
    """Write a Parquet file with any JSON as its header and a digest that fits."""
    table = pa.Table.from_batches([], schema=STATUS_SCHEMA) if table is None else table
    text = document if isinstance(document, str) else json.dumps(document)
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({HEADER_KEY: text.encode(), DIGEST_KEY: NO_DIGEST})
    return resealed(path, path.read_bytes())


def valid_document(**changes: object) -> dict[str, Any]:
    return {**json.loads(encode_header(HEADER, {})), **changes}


def read_or_refuse(path: Path) -> str:
    """Read all of a file; return the message where it is refused."""
    try:
        read(path)
    except StatusFileError as error:
        return str(error)
    return ""


def refusal(path: Path | str) -> str:
    with pytest.raises(StatusFileError) as caught:
        open_status(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- what goes in comes out -----------------------------------------------------------------


def test_rows_and_header_come_back(tmp_path: Path) -> None:
    header = replace(HEADER, shutdown_ms=5, tables=("a", "n:b"), notices=("é\n",), half="hbase")
    path = write(tmp_path / "f", STREAM, FILE, SERVER, header=header)
    with open_status(path) as status:
        assert status.header == header
        assert status.counts == {"stream": 1, "file": 1, "server": 1}
        assert not status.is_json
        assert status.parquet_path == status.path == path
    rows = {row["kind"]: row for row in read(path)}
    for row in (STREAM, FILE, SERVER):
        assert {name: rows[row["kind"]][name] for name in row} == row


def test_a_file_replaced_before_its_rows_are_read_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was opened by its path."""
    path = write(tmp_path / "f", STREAM)
    opened = pq.ParquetFile
    with open_status(path) as status:
        monkeypatch.setattr(pq, "ParquetFile", lambda at: opened(write(tmp_path / "new", SERVER).replace(at)))
        with pytest.raises(StatusFileError, match="was replaced or changed while it was read"):
            list(status.rows())


@pytest.mark.parametrize("name", ["f", "a file"])
def test_a_file_replaced_while_it_is_read_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As where a new FILE comes while a check is under way: the header is of one, the rows may be of the other."""
    path = write(tmp_path / name, STREAM)
    with open_status(path) as status:
        status.refuse_another()
        check = Comparison(Check(path, Scope()), None, MasterSide(status, HEADER), None, tmp_path)  # type: ignore[arg-type]
        monkeypatch.setattr(Comparison, "_outcome", lambda *_: write(tmp_path / "new", SERVER).replace(path))
        with pytest.raises(StatusFileError, match=r"was replaced or changed while it was read: run again"):
            check.answer(None, lambda _: None, always)  # type: ignore[arg-type]
        with pytest.raises(StatusFileError, match=r"was replaced or changed"):
            list(status.rows())
        path.unlink()
        with pytest.raises(StatusFileError, match=r"cannot be read any more: No such file"):
            status.refuse_another()


@pytest.mark.parametrize("name", ["_f", ".f", "a b", "a:b", "a*", "[a]", "{a}", "a%20b", "ü", "a\nb", "d=1"])
def test_names_that_spark_would_stumble_over_get_a_plain_link(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, STREAM)
    with open_status(path) as status:
        assert status.path == path
        assert len(list(status.rows())) == 1
        link = status.parquet_path
        assert re.fullmatch(r"/[A-Za-z0-9/_.-]+/status\.parquet", str(link))
        assert link.resolve() == path
    assert not link.parent.exists()
    assert path.exists()


def test_a_relative_path_becomes_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "f")
    monkeypatch.chdir(tmp_path)
    assert open_status("f").parquet_path == tmp_path / "f"


values = {
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.binary(): st.binary(max_size=8),
    pa.bool_(): st.booleans(),
}
any_row = st.fixed_dictionaries(
    {
        field.name: st.sampled_from(KINDS) if field.name == "kind" else st.none() | values[field.type]
        for field in STATUS_SCHEMA
    }
)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The writer keeps no order."""
    return sorted(rows, key=lambda row: [repr(row[name]) for name in STATUS_SCHEMA.names])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(any_row, min_size=1, max_size=6), max_size=5), st.integers(1, 4))
def test_any_rows_in_any_order_come_back(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[dict[str, Any]]], group_rows: int
) -> None:
    path = tmp_path_factory.mktemp("f") / "f"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer_module, "ROW_GROUP_ROWS", group_rows)
        with StatusWriter(path, HEADER) as writer:
            for rows in batches:
                writer.write(batch(*rows))
    written = [row for rows in batches for row in rows]
    with open_status(path) as status:
        for kind in KINDS:
            found = [row for part in status.rows({kind}) for row in part.to_pylist()]
            assert in_order(found) == in_order([row for row in written if row["kind"] == kind])
    assert len(read(path)) == len(written)


def test_a_row_group_holds_one_kind_and_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "ROW_GROUP_ROWS", 10)
    path = write(tmp_path / "f", *[STREAM, FILE] * 50)
    parquet = pq.ParquetFile(path)
    for index in range(parquet.num_row_groups):
        group = parquet.read_row_group(index, columns=["kind"])
        assert len(set(group.column("kind").to_pylist())) == 1
        assert group.num_rows <= 10


def test_buffers_are_bounded_over_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "BUFFERED_BYTES", 1)
    with StatusWriter(tmp_path / "f", HEADER) as writer:
        for row in (STREAM, FILE, STREAM):
            writer.write(batch(row))
            assert sum(buffer.rows for buffer in writer._buffers.values()) == 0
    assert pq.ParquetFile(tmp_path / "f").num_row_groups == 3


def test_one_big_batch_is_cut_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "ROW_GROUP_BYTES", 10_000)
    path = write(tmp_path / "f", *[{**STREAM, "start_key": b"k" * 1000}] * 100)
    assert pq.ParquetFile(path).num_row_groups >= 5
    assert len(read(path)) == 100


def test_header_may_come_late(tmp_path: Path) -> None:
    with StatusWriter(tmp_path / "f", HEADER) as writer:
        writer.write(batch(STREAM))
        writer.header = replace(HEADER, cut_ms=9, notices=("late",))
    assert read_header(tmp_path / "f").notices == ("late",)


@pytest.mark.parametrize("columns", [{"kind": ["nonsense"]}, {"kind": [None]}, {"kind": ["file"], "colour": ["red"]}])
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, columns: dict[str, list[Any]]) -> None:
    rows = pa.RecordBatch.from_pydict({name: pa.array(value, pa.string()) for name, value in columns.items()})
    with pytest.raises(ValueError, match=r"kind|[Ss]chema"), StatusWriter(tmp_path / "f", HEADER) as writer:
        writer.write(rows)
    assert list(tmp_path.iterdir()) == []


def test_names_cannot_pose_as_the_digest(tmp_path: Path) -> None:
    """The digest's own pattern as a row key, path and notice: the footer still has one place for it."""
    posing = DIGEST_KEY + b"\x18\x40" + NO_DIGEST
    header = replace(HEADER, notices=(posing.decode(),), cluster_id=posing.decode())
    row = {**STREAM, "start_key": posing, "path": posing.decode(), "table": posing.decode()}
    assert read(write(tmp_path / "f", row, header=header))[0]["start_key"] == posing


# --- every refusal --------------------------------------------------------------------------


def test_what_is_no_file_at_all(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none") == f"there is no status file {tmp_path}/none"
    assert "is a folder" in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path / "pipe")
    assert "not a regular file" in refusal("/dev/zero")
    assert "cannot read" in refusal("a\0b")
    (tmp_path / "f").touch()
    assert "cannot read" in refusal(tmp_path / "f" / "below")


def test_names_in_messages_are_harmless(tmp_path: Path) -> None:
    assert "\\x1b[2J\\x0aHBase" in refusal(tmp_path / "\x1b[2J\nHBase")


@pytest.mark.parametrize("content", [b"hello", b"PAR", b"[1]", b"\x00" * 100, b"PK\x03\x04" + b"x" * 50])
def test_foreign_content(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    assert "is not a status file" in refusal(tmp_path / "f")


def test_files_that_hold_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    assert "is empty" in refusal(tmp_path / "f")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "f")
    assert "another program wrote this Parquet" in refusal(tmp_path / "f")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = write(tmp_path / "f", STREAM, FILE).read_bytes()
    for length in random.Random(1).sample(range(1, len(data)), 300):
        (tmp_path / "f").write_bytes(data[:length])
        assert "truncated" in refusal(tmp_path / "f") or length < 4


def test_every_altered_byte_is_refused(tmp_path: Path) -> None:
    """All of the footer, where parsing could go astray, and a sample of the data before it."""
    path = write(tmp_path / "f", STREAM, SERVER)
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    sample = random.Random(2)
    places = [*sample.sample(range(footer), 300), *range(footer, len(data))]
    for place in places:
        altered = bytearray(data)
        altered[place] ^= sample.randrange(1, 256)
        path.write_bytes(altered)
        refusal(path)


def test_altered_bytes_behind_a_fitting_digest_never_trace_back(tmp_path: Path) -> None:
    """Damage by someone who seals the file again: refused, or read as something, never a crash."""
    path = write(tmp_path / "f", STREAM, SERVER, FILE)
    data = path.read_bytes()
    sample = random.Random(3)
    for place in sample.sample(range(len(data)), 400):
        altered = bytearray(data)
        altered[place] ^= 1 << sample.randrange(8)
        if DIGEST_PATTERN.search(altered) is None:
            continue
        resealed(path, bytes(altered))
        assert "\n" not in read_or_refuse(path)


def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    """Also if its digest is another one."""
    message = refusal(forged(tmp_path / "f", {"format_version": 2, "whatever": []}))
    assert all(words in message for words in ("format version 2", "upgrade"))
    table = pa.table({"other": [1]}).replace_schema_metadata({HEADER_KEY: b'{"format_version": 3}'})
    pq.write_table(table, tmp_path / "f")
    assert "format version 3" in refusal(tmp_path / "f")


def test_no_digest(tmp_path: Path) -> None:
    table = pa.Table.from_batches([], schema=STATUS_SCHEMA)
    pq.write_table(table.replace_schema_metadata({HEADER_KEY: json.dumps(valid_document())}), tmp_path / "f")
    assert "no valid digest" in refusal(tmp_path / "f")


@pytest.mark.parametrize(
    "document",
    [
        *("", "[]", "null", "{", "[" * 100_000, '{"format_version": NaN}'),
        *('{"format_version": 1, "format_version": 1}', '{"format_version": ' + "9" * 5000 + "}"),
        *({"format_version": True}, {"format_version": 0}, {"side": "both"}, {"half": "none"}, {"evidence": "hope"}),
        *({"cut_ms": -1}, {"cut_ms": 1.5}, {"cut_ms": True}, {"cut_ms": 10**17}, {"shutdown_ms": []}),
        *({"cluster_id": None}, {"tables": "t"}, {"notices": [1]}),
        *({"rows": rows} for rows in (None, {"stream": -1}, {"nonsense": 1}, {"stream": 7})),
    ],
)
def test_insane_headers(tmp_path: Path, document: str | dict[str, Any]) -> None:
    """They are no header, or one with these changes."""
    document = document if isinstance(document, str) else valid_document(**document)
    assert "is not a valid status file" in refusal(forged(tmp_path / "f", document))


def test_headers_may_have_more_keys(tmp_path: Path) -> None:
    assert read_header(forged(tmp_path / "f", valid_document(colour="red"))) == HEADER


@pytest.mark.parametrize("key", [item.name for item in fields(Header)])
def test_headers_may_have_no_fewer_keys(key: str, tmp_path: Path) -> None:
    """Nobody takes what another version did not write for a fact, such as that nothing was pruned."""
    document = valid_document()
    del document[key]
    assert f"lacks {key}: write it again" in refusal(forged(tmp_path / "f", document))


def test_every_field_of_the_header_can_be_checked() -> None:
    for item in fields(Header):
        assert str(item.type) in _CHECKS


def test_other_columns(tmp_path: Path) -> None:
    table = pa.table({"kind": pa.array([], pa.string())})
    assert "columns" in refusal(forged(tmp_path / "f", valid_document(), table))


def test_parts_bigger_than_any_real_one_are_not_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "f", *[STREAM] * 100)
    monkeypatch.setattr("status_tool.status_file.reader._MAX_GROUP_ROWS", 99)
    assert "bigger than any real one" in refusal(path)


def test_a_bomb_is_not_expanded_before_its_digest_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "f", STREAM)
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("opened before the digest was checked")

    monkeypatch.setattr(pq, "ParquetFile", never)
    assert "does not match its digest" in refusal(path)


def test_the_side_that_is_needed(tmp_path: Path) -> None:
    """Of a file without rows, which is one, too."""
    path = write(tmp_path / "f")
    assert (read(path), open_status(path, require_side="master").header) == ([], HEADER)
    with pytest.raises(StatusFileError, match="is a master's status, but a slave's is needed here"):
        open_status(path, require_side="slave")


# --- writing: whole or not at all -----------------------------------------------------------


def write_and_raise(path: Path, error: type[BaseException]) -> None:
    with StatusWriter(path, HEADER) as writer:
        writer.write(batch(*[FILE] * 10))
        writer._flush("file")
        assert len(list(path.parent.iterdir())) == 2
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_the_older_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = write(tmp_path / "f", STREAM)
    before = path.read_bytes()
    with pytest.raises(error):
        write_and_raise(path, error)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_created_before_there_is_something_to_write(tmp_path: Path) -> None:
    with StatusWriter(tmp_path / "f", HEADER) as writer:
        writer.write(batch(STREAM))
        assert list(tmp_path.iterdir()) == []


def test_an_invalid_header_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="side"), StatusWriter(tmp_path / "f", replace(HEADER, side="x")):
        pass
    assert list(tmp_path.iterdir()) == []


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in [
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "f", "there is no folder"),
        (tmp_path / "file" / "f", r"Not a directory|no folder"),
        (Path("/dev/null"), "not a regular file"),
    ]:
        with pytest.raises(OutputError, match=reason), StatusWriter(path, HEADER):
            raise AssertionError("must be refused before the work")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="no permission"), StatusWriter(tmp_path / "f", HEADER):
        pass


def test_a_folder_that_takes_no_files(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write /proc/f: "):
        write(Path("/proc/f"), STREAM)


def test_links_are_followed_and_the_mode_is_kept(tmp_path: Path) -> None:
    target = write(tmp_path / "target")
    target.chmod(0o600)
    (tmp_path / "link").symlink_to(target)
    write(tmp_path / "link", STREAM)
    assert (tmp_path / "link").is_symlink()
    assert len(read(target)) == 1
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert write(tmp_path / "f").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_longest_name(tmp_path: Path) -> None:
    assert read(write(tmp_path / ("ü" * 127), STREAM))


def run_python(code: str, *args: object) -> subprocess.CompletedProcess[str]:
    program = "import os, signal, sys, time\nfrom tests.status_files import *\n" + textwrap.dedent(code)
    command = [sys.executable, "-c", program, *map(str, args)]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)


def test_kill_9_in_the_middle_leaves_the_older_file(tmp_path: Path) -> None:
    path = write(tmp_path / "f", STREAM)
    before = path.read_bytes()
    result = run_python(
        """
        with StatusWriter(Path(sys.argv[1]), HEADER) as writer:
            writer.write(batch(*[FILE] * 1000))
            writer._flush("file")
            writer._output._sink.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        path,
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    assert path.read_bytes() == before
    assert [row["kind"] for row in read(path)] == ["stream"]


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    """A limit on file size stands for the disk: hit while rows are written, or only by the footer."""
    path = write(tmp_path / "f", STREAM)
    before = path.read_bytes()
    code = """
        import resource
        from status_tool.errors import OutputError
        path = Path(sys.argv[1])
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        for limit in (1, 4096, 9000):
            for flush in (True, False):
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
                try:
                    with StatusWriter(path, HEADER) as writer:
                        for n in range(20):
                            writer.write(batch(*[{**FILE, "path": os.urandom(64).hex()} for _ in range(200)]))
                            if flush:
                                writer._flush("file")
                                writer._output._sink.flush()
                except OutputError as error:
                    print(error)
                assert list(path.parent.iterdir()) == [path]
    """
    result = run_python(code, path)
    assert result.stdout == f"cannot write {path}: File too large\n" * 6
    assert result.stderr == ""
    assert path.read_bytes() == before


def test_an_interrupt_removes_the_temporary_file(tmp_path: Path) -> None:
    result = run_python(
        """
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background process ignores it
        with StatusWriter(Path(sys.argv[1]), HEADER) as writer:
            writer.write(batch(*[FILE] * 10))
            writer._flush("file")
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        """,
        tmp_path / "f",
    )
    assert "KeyboardInterrupt" in result.stderr
    assert list(tmp_path.iterdir()) == []
