"""Folders on a local disk, compared with each other by the whole tool."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pair import Result, tool_here

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_an_export_and_its_copy(tmp_path: Path) -> None:
    """Same content matches under another name; another byte, another layout, a link, an empty folder are reported."""
    for side in ("export", "copy"):
        (tmp_path / side / "sub" / "hollow").mkdir(parents=True)
        for size in (0, 511, 3000):
            (tmp_path / side / "sub" / f"file {size}").write_bytes(b"x" * size)
        (tmp_path / side / "left.tmp").write_bytes(os.urandom(10))
        (tmp_path / side / "link").symlink_to(tmp_path)
    paths, status = tmp_path / "paths", tmp_path / "status"
    paths.write_text(f"file://{tmp_path}/export\n")
    common = ("--only", "hdfs", "--exclude", "*.tmp", "--layout")
    written = tool_here("run", "-m", "-o", status, "-f", paths, "--deep", *common, "1024")
    assert written.exit_code == 0, written

    def check(layout: str, *options: str) -> Result:
        moved = f"{tmp_path}/export=file://{tmp_path}/copy"
        return tool_here("run", "-i", status, "--json", "--map-path", moved, *common, layout, *options)

    result = check("1024")
    assert result.exit_code == 0, result
    assert result.json["hdfs"]["files"]["match"] == 3
    notices = " ".join(result.json["notices"])
    assert "1 empty folder on the slave" in notices
    assert "1 symbolic link on the master" in notices
    result = check("2048")
    assert (result.exit_code, result.json["hdfs"]["files"]["incomparable"]) == (3, 1), result
    assert check("2048", "--deep=all").exit_code == 0
    (tmp_path / "copy" / "sub" / "file 511").write_bytes(b"x" * 510 + b"y")
    assert check("1024").exit_code == 1


@pytest.mark.slow
def test_what_f_names_is_checked_whatever_its_name(tmp_path: Path) -> None:
    """Names with line ends are not on the copy; and nothing is known of a folder that FILE left out."""
    for side in ("export", "copy"):
        (tmp_path / side / "sub").mkdir(parents=True)
        (tmp_path / side / "sub" / "plain").write_bytes(b"x")
    names = ("new\nline", "paragraph\u2029 ")
    for name in names:
        (tmp_path / "export" / "sub" / name).write_bytes(b"x")
    (tmp_path / "export" / "sub" / ".staging").mkdir()
    (tmp_path / "export" / "sub" / ".staging" / "kept").write_bytes(b"x")
    paths, status, common = tmp_path / "paths", tmp_path / "status", ("--only", "hdfs")
    paths.write_text(f"file://{tmp_path}/export\n")
    written = tool_here("run", "-m", "-o", status, "-f", paths, *common)
    assert written.exit_code == 0, written

    def check(*named: str) -> Result:
        paths.write_text("".join(f"{tmp_path}/export/{name}\n" for name in named))
        moved = f"{tmp_path}/export=file://{tmp_path}/copy"
        return tool_here("run", "-i", status, "-f", paths, "--json", "--map-path", moved, *common)

    result = check("sub")
    assert (result.exit_code, result.json["hdfs"]["files"]["missing"]) == (1, 2), result
    for name in names:
        (tmp_path / "copy" / "sub" / name).write_bytes(b"x")
    assert check("sub").exit_code == 0
    assert check("sub", "sub/.staging/kept").exit_code == 3
