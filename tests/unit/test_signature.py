"""Signed status files, permissions of what is written, and secrets that nobody gets to see."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from functools import partialmethod
from pathlib import Path

import pytest

from status_tool.atomic import file_mode
from status_tool.cli.defaults import FILE_VARIABLE
from status_tool.cli.main import main
from status_tool.clients.webhdfs import WebHdfs
from status_tool.errors import ConfigurationError, StatusFileError
from status_tool.status_file.reader import open_status
from status_tool.status_file.signature import SIGNATURE_PATTERN, SignKey, read_key
from tests.status_files import HEADER, rewritten, write
from tests.unit.test_status_file import resealed
from tests.unit.test_webhdfs import FakeHdfs, fake  # noqa: F401  # a fixture

SECRET = "planted-secret-of-this-test"
SAMPLE = Path(__file__).parents[2] / "sample_status" / "complete"


@pytest.fixture(autouse=True)
def _as_always() -> None:
    file_mode(None)


def key_file(path: Path, secret: str = SECRET) -> Path:
    path.write_text(secret + "\n")
    path.chmod(0o600)
    return path


ONE, TWO = SignKey(b"one" * 10), SignKey(b"two" * 10)


def written(path: Path, key: SignKey | None, name: str = "/x", cut_ms: int = HEADER.cut_ms) -> Path:
    return write(path, {"kind": "file", "path": name}, header=replace(HEADER, cut_ms=cut_ms), key=key)


def test_a_signature_holds(tmp_path: Path) -> None:
    """For the key that made it; a reader without key reads the file all the same, as older versions do."""
    path = written(tmp_path / "f", ONE)
    with open_status(path, key=ONE) as signed, open_status(path) as plain:
        assert (signed.header, signed.counts) == (plain.header, plain.counts)
    with pytest.raises(StatusFileError, match="not signed with the key"):
        open_status(path, key=TWO)


def test_what_is_not_signed_is_not_taken(tmp_path: Path) -> None:
    """A plain file, the original's JSON, and a signed file that was opened and written again by somebody else."""
    with pytest.raises(StatusFileError, match="is not signed: write it with --sign-key"):
        open_status(written(tmp_path / "plain", None), key=ONE)
    (tmp_path / "f.json").write_text('{"shutdownTime": 1, "hdfsState": {}, "hBaseState": {}}')
    open_status(tmp_path / "f.json").close()
    with pytest.raises(StatusFileError, match="cannot be signed"):
        open_status(tmp_path / "f.json", key=ONE)
    forged = written(tmp_path / "forged", TWO, "/y", HEADER.cut_ms + 1)
    open_status(forged).close()  # whole, and still not ours
    with pytest.raises(StatusFileError, match="not signed with the key"):
        open_status(forged, key=ONE)


def test_another_files_signature_does_not_fit(tmp_path: Path) -> None:
    """Put into a file of the same length, with a digest that fits."""
    first, second = written(tmp_path / "1", ONE), written(tmp_path / "2", TWO, "/y", HEADER.cut_ms + 1)
    (signature,) = SIGNATURE_PATTERN.findall(first.read_bytes())
    resealed(second, SIGNATURE_PATTERN.sub(lambda found: found[0].replace(found[1], signature), second.read_bytes()))
    open_status(second).close()
    with pytest.raises(StatusFileError, match="not signed with the key"):
        open_status(second, key=ONE)


@pytest.mark.parametrize(("mode", "content"), [(0o644, SECRET), (0o640, SECRET), (0o600, ""), (0o600, "short")])
def test_a_key_that_is_none(tmp_path: Path, mode: int, content: str) -> None:
    """Readable by others, empty, or too short to be one."""
    path = key_file(tmp_path / "key", content)
    path.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        read_key(path)


def test_a_key_file_that_is_none(tmp_path: Path) -> None:
    """Absent, a folder, a pipe that nobody writes to; the key is shown nowhere."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, said in (("nothing", "No such file"), (".", "regular|directory"), ("pipe", "regular")):
        with pytest.raises(ConfigurationError, match=said):
            read_key(tmp_path / name)
    assert SECRET not in repr(read_key(key_file(tmp_path / "key")))


@pytest.mark.parametrize(
    "command",
    [
        ["run", "-i", "f"],
        ["run", "--published"],
        ["watch", "-i", "f"],
        ["recovery-point", "--thrift", "h:1", "--zookeeper", "h:1/hbase"],
        ["paths", "--cluster", "a=f", "--cluster", "b=f"],
        ["prune", "f", "--thrift", "h:1", "--zookeeper", "h:1/hbase"],
    ],
)
def test_a_signature_that_the_configuration_requires_is_required(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever forgets the key would take anybody's FILE for the master's."""
    (tmp_path / "status-tool.toml").write_text("require-signature = true\n")
    (tmp_path / "status-tool.toml").chmod(0o600)
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "status-tool.toml"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").touch()
    assert main(command) == 2
    assert "--require-signature needs --sign-key FILE" in capsys.readouterr().err


def test_a_point_of_signed_files_is_as_old_as_its_asker_allows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever may write to the slave's table of files could raise the interval, and an old point would be fresh."""
    key = key_file(tmp_path / "key")
    command = ["recovery-point", "--thrift", "127.0.0.1:1", "--zookeeper", "127.0.0.1:1/hbase", "--sign-key", str(key)]
    assert main(command) == 2
    assert "--sign-key needs --max-age SECONDS" in capsys.readouterr().err
    assert main([*command, "--max-age", "90"]) == 2
    assert "--max-age" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-i", "f", "--require-signature"), "needs --sign-key"),
        (("-m", "-o", "f", "--require-signature"), "goes with -i"),
        (("-d", "--sign-key", "k"), "goes with -o"),
        (("-m", "-o", "f.json", "--sign-key", "k"), "cannot be signed"),
        (("-m", "-o", "f", "--file-mode", "rw"), "octal"),
        (("-m", "-o", "f", "--file-mode", "444"), "octal"),
        (("-m", "-o", "f", "--file-mode", "4755"), "octal"),
    ],
)
def test_options_that_do_not_fit(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One line, exit code 2."""
    assert main(["run", *(str(tmp_path / a) if a in ("f", "k", "f.json") else a for a in arguments)]) == 2
    assert said in capsys.readouterr().err


def test_permissions(fake: FakeHdfs, tmp_path: Path) -> None:  # noqa: F811
    """0600, whatever the umask; of a file that is replaced its own; else what --file-mode says. The journal, too."""
    paths, output = tmp_path / "paths", tmp_path / "status"
    paths.write_text("/data\n")
    seen: list[int] = []
    answer = fake.answer

    def looked(op: str, path: str, query: dict[str, list[str]]) -> tuple[int, object]:
        if (tmp_path / "status.resume").exists():
            seen.append(stat.S_IMODE((tmp_path / "status.resume").stat().st_mode))
        return answer(op, path, query)

    fake.answer = looked  # type: ignore[method-assign]
    command = ["run", "-m", "-o", str(output), "-d", "--debug-dir", str(tmp_path / "debug")]
    command += ["--only", "hdfs", "-f", str(paths), "--webhdfs", fake.url]
    before = os.umask(0)
    try:
        assert main(command) == 0
        assert {_mode(tmp_path / name) for name in ("status", "debug/file.jsonl")} == {0o600}
        assert _mode(tmp_path / "debug") == 0o700
        assert set(seen) == {0o600}
        output.chmod(0o640)
        assert main(command) == 0
        assert _mode(output) == 0o640
        assert main([*command, "--file-mode", "644"]) == 0
        assert _mode(output) == 0o644
    finally:
        os.umask(before)
        file_mode(None)  # it is the process's, and other tests' too


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
def test_a_signed_check_leaves_no_secret_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Keys, passwords of the site files and of the environment's proxy: in no output, dump, report or error."""
    conf, out = tmp_path / "conf", tmp_path / "out"
    conf.mkdir()
    out.mkdir()
    secrets = {
        "ssl.client.keystore.password": SECRET + "-1",
        "hbase.thrift.ssl.keystore.password": SECRET + "-2",
        "hadoop.security.group.mapping.ldap.bind.password": SECRET + "-3",
        "hbase.zookeeper.property.ssl.trustStore.password": SECRET + "-4",
    }
    for name in ("hbase-site.xml", "hdfs-site.xml", "core-site.xml"):
        body = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in secrets.items())
        (conf / name).write_text(f"<configuration>{body}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
    monkeypatch.setenv("http_proxy", f"http://me:{SECRET}-5@127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    key = key_file(tmp_path / "key")
    master, slave = (
        rewritten(SAMPLE / f"{side}.status", to=out / f"{side}.status", key=read_key(key))
        for side in ("master", "slave")
    )
    check = ["run", "-i", str(master), "--slave-status", str(slave), "--require-signature", "--sign-key", str(key)]
    reports = ["--report", str(out / "r.html"), "--metrics", str(out / "m.prom")]
    assert main([*check, *reports, "-d", "--debug-dir", str(out / "debug"), "--json"]) == 0
    other = key_file(tmp_path / "other", SECRET + "-6-of-another")
    assert main(["run", "-i", str(master), "--sign-key", str(other)]) == 2
    paths = tmp_path / "paths"
    paths.write_text("/data\n")
    monkeypatch.setattr(WebHdfs, "__init__", partialmethod(WebHdfs.__init__, patience_s=0.1))
    away = ["run", "-m", "-o", str(out / "new"), "--only", "hdfs", "-f", str(paths)]
    assert main([*away, "--sign-key", str(key), "--webhdfs", "http://namenode.invalid:1"]) == 2
    assert main([*away, "--webhdfs", f"http://me:{SECRET}-7@127.0.0.1:1"]) == 2
    assert main([*away, "--thrift", "127.0.0.1:1", "--zookeeper", "127.0.0.1:1"]) == 2
    left = [path for path in out.rglob("*") if path.is_file()]
    assert {path.name for path in left} > {"r.html", "m.prom", "master.status", "slave.status"}
    assert [path for path in left if SECRET.encode() in path.read_bytes()] == []
    printed = capfd.readouterr()
    assert SECRET not in printed.out + printed.err
    assert printed.err.count("status-tool: ") >= 4
