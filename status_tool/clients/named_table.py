"""A table of HBase that a command uses: small reads and writes, and whether it can be used at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import happybase

from status_tool.atomic import changed
from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.thrift import connection
from status_tool.errors import ConfigurationError


class NamedTable(ABC):
    """A table by its name; each call opens a connection of its own (the server drops idle connections)."""

    def __init__(self, endpoint: ThriftEndpoint, name: str) -> None:
        self.endpoint = endpoint
        self.name = name

    @contextmanager
    def _open(self) -> Iterator[happybase.Table]:
        with connection(self.endpoint) as client:
            yield client.table(self.name)

    @contextmanager
    def _change(self) -> Iterator[happybase.Table]:
        """Open the table for changes that stay: an interruption no longer says that nothing was written."""
        with self._open() as table:
            changed.add(self.name)
            yield table

    def require(self) -> None:
        """Raise `ConfigurationError` unless the table can be used."""
        if (problem := self.problem()) is not None:
            raise ConfigurationError(problem)

    def problem(self) -> str | None:
        """Return why the table cannot be used, and what to do; None if it can."""
        with connection(self.endpoint) as client:
            if self.name.encode() not in client.tables():
                # With Kerberos HBase lists only what a user may see.
                return self._hidden() if self.endpoint.has_kerberos else self._absent()
            return self._unfit(client.table(self.name)) or (
                None if client.is_table_enabled(self.name) else self._disabled()
            )

    @abstractmethod
    def _absent(self) -> str:
        """Return what to do if the table does not exist."""

    @abstractmethod
    def _hidden(self) -> str:
        """Return what to do if the table does not exist or is hidden from this user."""

    @abstractmethod
    def _disabled(self) -> str:
        """Return what to do if the table is disabled."""

    @abstractmethod
    def _unfit(self, table: happybase.Table) -> str | None:
        """Return why the table cannot serve as what it is for; None if it can."""
