"""Status files that `paths` takes for clusters, before anything is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from status_tool.errors import UsageError
from status_tool.runs.graph_check import NamedCluster, PathsAsked, _Desk
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.scope import Scope


def opened(folder: Path, scope: Scope) -> None:
    """Open a file of one table."""
    file = folder / "sun.status"
    with StatusWriter(file, Header("master", "m", 5, 5, tables=("t",))):
        pass
    _Desk(PathsAsked((NamedCluster("sun", files=(file,)),), scope), folder, lambda _: None).open_files()


def test_a_file_of_some_tables_proves_no_path_of_all(tmp_path: Path) -> None:
    """What `run -m --table t` has left out would be in no edge."""
    opened(tmp_path, Scope(tables=frozenset({"t"})))
    with pytest.raises(UsageError, match="holds only t: name these by --table"):
        opened(tmp_path, Scope())
