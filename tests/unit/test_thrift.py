"""The transports and protocols of HBase's Thrift server, spoken with a server in this process."""

from __future__ import annotations

import importlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import happybase  # noqa: F401  # generates Hbase_thrift
import pytest
from thriftpy2.http import THttpServer
from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import (
    TBufferedTransportFactory,
    TFramedTransportFactory,
    TServerSocket,
    TSSLServerSocket,
)

from status_tool.config import Settings, SiteConfig, ThriftEndpoint
from status_tool.errors import ConnectionFailed
from status_tool.sources.thrift import connection

TABLES = [b"one", b"two"]
hbase = importlib.import_module("Hbase_thrift")


class Handler:
    """As much of HBase as is asked for."""

    def getTableNames(self) -> list[bytes]:
        return TABLES


@pytest.fixture
def serve() -> Iterator[Callable[..., ThriftEndpoint]]:
    servers: list[Any] = []

    def start(
        framed: bool = False,
        compact: bool = False,
        http: bool = False,
        certificate: Path | None = None,
        service: Any = hbase.Hbase,
    ) -> ThriftEndpoint:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        binary: Any = TBinaryProtocolFactory
        processor = TProcessor(service, Handler())
        if http:
            server: Any = THttpServer(processor, ("127.0.0.1", port), TBufferedTransportFactory(), binary())
            servers.append(server.httpd.shutdown)
        else:
            kind: Any = TSSLServerSocket if certificate else TServerSocket
            listening = kind("127.0.0.1", port, **({"certfile": str(certificate)} if certificate else {}))
            protocol: Any = TCompactProtocolFactory if compact else TBinaryProtocolFactory
            server = TThreadedServer(
                processor,
                listening,
                iprot_factory=protocol(),
                itrans_factory=(TFramedTransportFactory if framed else TBufferedTransportFactory)(),
                daemon=True,
            )
            listening.listen()
            listening.listen = lambda: None  # it is listening before this returns
            servers.append(server.close)

        def run() -> None:
            while True:
                with suppress(OSError, ssl.SSLError):  # a client that does not trust us ends thriftpy2's loop
                    server.serve()
                if http or server.closed:
                    return

        threading.Thread(target=run, daemon=True).start()
        return ThriftEndpoint("127.0.0.1", port, framed, compact, http, certificate is not None)

    yield start
    for stop in servers:
        stop()


def names(endpoint: ThriftEndpoint) -> list[bytes]:
    with connection(endpoint) as client:
        found: list[bytes] = client.tables()
    return found


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("compact", [False, True])
def test_transports_and_protocols(serve: Callable[..., ThriftEndpoint], framed: bool, compact: bool) -> None:
    """As hbase.regionserver.thrift.framed and .compact say."""
    assert names(serve(framed=framed, compact=compact)) == TABLES


def test_http(serve: Callable[..., ThriftEndpoint]) -> None:
    """Several messages over one connection object."""
    with connection(serve(http=True)) as client:
        assert client.tables() == TABLES
        assert client.tables() == TABLES


def test_another_transport_than_the_servers(serve: Callable[..., ThriftEndpoint]) -> None:
    """One line that says what to set."""
    endpoint = serve(framed=True)
    other = ThriftEndpoint(endpoint.host, endpoint.port)
    with pytest.raises(ConnectionFailed, match=r"binary protocol over unframed transport.*thrift\.framed, \.compact"):
        names(other)
    http = ThriftEndpoint(endpoint.host, endpoint.port, http=True)
    with pytest.raises(ConnectionFailed, match=r"hbase\.regionserver\.thrift\.framed|cannot reach"):
        names(http)


def test_a_server_that_is_not_ours(serve: Callable[..., ThriftEndpoint]) -> None:
    """`hbase thrift2` knows other methods."""
    other = type("THBaseService", (hbase.Hbase,), {"thrift_services": ["openScanner"]})
    with pytest.raises(ConnectionFailed, match="not `hbase thrift2`"):
        names(serve(service=other))


def certificate(folder: Path, name: str) -> Path:
    """A key and a certificate for this host name, which is its own authority."""
    path = folder / f"{name}.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", str(path)]
    command += ["-out", f"{path}.crt", "-subj", f"/CN={name}", "-addext", f"subjectAltName={name}"]
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


def test_tls(serve: Callable[..., ThriftEndpoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate has to be of a known authority and for the name that was asked for; it is said which is not."""
    good, other = certificate(tmp_path, "IP:127.0.0.1"), certificate(tmp_path, "DNS:elsewhere")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", f"{good}.crt")
    assert names(serve(certificate=good)) == TABLES
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", f"{other}.crt")
    with pytest.raises(ConnectionFailed, match=r"TLS: .*self-signed"):
        names(serve(certificate=good))
    with pytest.raises(ConnectionFailed, match=r"TLS: .*IP address mismatch"):
        names(serve(certificate=other))


def test_how_the_server_talks_is_read_from_the_site() -> None:
    """Also for a server that --thrift names; the types that imply frames; HTTP knows neither frames nor compact."""
    prefix = "hbase.regionserver.thrift"
    site = {f"{prefix}.framed": "true", f"{prefix}.compact": "TRUE", "hbase.thrift.ssl.enabled": "true"}
    assert Settings(SiteConfig(site), "h:1").thrift() == ThriftEndpoint("h", 1, True, True, False, True)
    assert Settings(SiteConfig(site | {f"{prefix}.http": "true"}), "h:1").thrift() == ThriftEndpoint(
        "h", 1, http=True, tls=True
    )
    assert Settings(SiteConfig({f"{prefix}.server.type": "nonblocking"}), "h:1").thrift().framed
    assert not Settings(SiteConfig({f"{prefix}.server.type": "threadpool"}), "h:1").thrift().framed
