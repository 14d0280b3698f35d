"""A secure lab: the realm by itself, and one cluster in it."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import AdminError, Cluster, Kdc, Lab, Security

pytestmark = pytest.mark.cluster

NO_GSSAPI = "needs the Python package gssapi, which is built against MIT Kerberos (Debian: apt install libkrb5-dev)"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(secure=True) as lab:
        yield lab


@pytest.fixture(scope="module")
def security(lab: Lab) -> Security:
    assert lab.security is not None
    return lab.security


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Cluster:
    return lab.cluster("a", region_servers=1)


def service_ticket(kdc: Kdc, **store: Path) -> str:
    """Who asked for a ticket for HBase by MIT's library, or why there is none; in a process of its own."""
    pytest.importorskip("gssapi", reason=NO_GSSAPI)
    script = """
import sys, gssapi
name = gssapi.Name("hbase@localhost", gssapi.NameType.hostbased_service)
try:
    credentials = gssapi.Credentials(usage="initiate", store=dict(word.split("=", 1) for word in sys.argv[1:]))
    gssapi.SecurityContext(name=name, creds=credentials, usage="initiate").step()
    print(credentials.name)
except gssapi.exceptions.GSSError as error:
    print(error)
"""
    words = [f"{key}={value}" for key, value in {"ccache": "MEMORY:new", **store}.items()]
    environment = {**os.environ, **kdc.environment}
    done = subprocess.run(
        [sys.executable, "-c", script, *words], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_tickets_by_keytab_and_by_ticket_cache(security: Security, tmp_path: Path) -> None:
    kdc = security.kdc
    assert service_ticket(kdc, client_keytab=kdc.keytab("status")) == "status@LAB.EXAMPLE"
    assert service_ticket(kdc, ccache=kdc.ticket("status", tmp_path / "cache")) == "status@LAB.EXAMPLE"


def test_no_name_of_the_realm_is_looked_up_elsewhere(security: Security) -> None:
    """Kerby writes a krb5.conf as well, which has not these."""
    settings = security.kdc.krb5_conf.read_text()
    assert all(f"{key} = false" in settings for key in ("rdns", "dns_lookup_kdc", "dns_canonicalize_hostname"))


def test_tickets_that_fail(security: Security, tmp_path: Path) -> None:
    kdc = security.kdc
    assert "expired" in service_ticket(kdc, ccache=kdc.expired_ticket("status", tmp_path / "cache"))
    kdc.add("changed")
    kdc.change_key("changed")
    assert "Decrypt integrity check failed" in service_ticket(kdc, client_keytab=kdc.keytab("changed"))
    kdc.add("gone")
    kdc.remove("gone")
    assert "not found in Kerberos database" in service_ticket(kdc, client_keytab=kdc.keytab("gone"))


def test_hbase_knows_who_calls_and_what_they_may_do(cluster: Cluster, security: Security) -> None:
    cluster.admin.create_table("t", {"f": 1})
    assert cluster.admin.put_rows("t", "f", 100) == 100
    assert cluster.admin.permissions("t") == ["admin: READ, WRITE, EXEC, CREATE, ADMIN"]
    user: dict[str, Any] = {"principal": security.kdc.principal("nobody"), "keytab": str(security.kdc.keytab("nobody"))}
    with pytest.raises(AdminError, match="AccessDeniedException"):
        cluster.admin.call("get_as", table="t", row=b"row00000001", **user)
    cluster.admin.grant("t", "nobody", ["READ"])
    cluster.admin.call("get_as", table="t", row=b"row00000001", **user)
    with pytest.raises(AdminError, match="AccessDeniedException"):
        cluster.admin.call("put_as", table="t", row=b"row00000001", family="f", **user)


def test_webhdfs_is_https_and_asks_for_a_ticket(cluster: Cluster, security: Security) -> None:
    url = f"{cluster.webhdfs_url}/webhdfs/v1/?op=LISTSTATUS"
    assert url.startswith("https://localhost:")
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(url, context=ssl.create_default_context(cafile=str(security.stores.ca)))
    assert refused.value.headers["WWW-Authenticate"] == "Negotiate"
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(url)


def test_a_killed_region_server_comes_back(cluster: Cluster) -> None:
    cluster.admin.create_table("killed", {"f": 1})
    cluster.admin.put_rows("killed", "f", 10)
    cluster.crash(cluster.region_servers[0])
    cluster.region_servers[0].start()
    assert cluster.admin.digest("killed").rows == 10
