"""A Kerberos realm of one lab: a KDC on loopback, keytabs, ticket caches."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from .admin import AdminProcess
from .process import Java, Server
from .waiting import wait_until

REALM = "LAB.EXAMPLE"
HOST = "localhost"
"""The one host of the realm: what clients must call every server."""
SERVICES = ("nn", "dn", "HTTP", "hbase", "zookeeper")
ADMIN = "admin"
"""A superuser of HBase and of HDFS."""
USERS = (ADMIN, "status", "reader", "nobody")
"""`status` is a superuser of HBase, as the tool has to be to read the queues; the others are nothing by themselves."""
PATIENCE = 60.0  # seconds for one command
HEAP_MB = 512  # Kerby takes 16 MB for every connection, and all servers come at the same time

_OPTIONS = (
    # Every server of a kind is the same principal here, and they start at the same time.
    "-Dsun.security.krb5.rcache=none",
    # Kerby refuses what JDKs ask of a KDC by default.
    "-Dsun.security.krb5.disableReferrals=true",
)


def krb5_conf(port: int) -> str:
    """The text of a krb5.conf, for MIT's library and for Java. No name is looked up elsewhere."""
    libdefaults = {
        "default_realm": REALM,
        "dns_lookup_kdc": "false",
        "dns_lookup_realm": "false",
        "dns_canonicalize_hostname": "false",
        "rdns": "false",
        "udp_preference_limit": "1",
        "forwardable": "true",
    }
    lines = [f"  {key} = {value}" for key, value in libdefaults.items()]
    realm = f"[realms]\n  {REALM} = {{\n    kdc = 127.0.0.1:{port}\n  }}\n"
    return "\n".join(["[libdefaults]", *lines, realm]) + f"[domain_realm]\n  {HOST} = {REALM}\n"


class Kdc:
    """The KDC of a lab and its administrator. Principals are without the realm, such as "hbase/localhost"."""

    def __init__(self, java: Java, folder: Path, port: int) -> None:
        self.folder = folder
        self.krb5_conf = folder / "krb5.conf"
        self._own_folder = folder / "kerby"  # it writes a krb5.conf, too
        self._hosts = folder / "hosts"
        main, arguments = "io.github.statustool.lab.LabKdc", (REALM, str(port), str(self._own_folder))
        self.server = Server(java, "kdc", folder, main, arguments, HEAP_MB, port)
        self._process = AdminProcess(self.server)

    def start(self) -> None:
        """Start it with a keytab for every service and user."""
        self._own_folder.mkdir(parents=True)
        self.krb5_conf.write_text(krb5_conf(self.server.port))
        # Whatever this machine is called: a Thrift server takes its own name for that of its principal.
        self._hosts.write_text(f"127.0.0.1 {HOST} {os.uname().nodename}\n")
        self._process.start()
        for service in SERVICES:
            self.add(f"{service}/{HOST}")
        for user in USERS:
            self.add(user)

    @property
    def client_options(self) -> tuple[str, ...]:
        """A JVM's, to be of this realm."""
        here = (f"-Djava.security.krb5.conf={self.krb5_conf}", f"-Djdk.net.hosts.file={self._hosts}")
        return (*_OPTIONS, *here)

    def client(self, java: Java) -> Java:
        """JVMs of this realm."""
        return replace(java, options=(*java.options, *self.client_options))

    @property
    def environment(self) -> Mapping[str, str]:
        """What MIT's library needs in the environment; it finds no ticket but those that are named."""
        return {"KRB5_CONFIG": str(self.krb5_conf), "KRB5CCNAME": f"FILE:{self.folder / 'no-tickets'}"}

    @staticmethod
    def principal(name: str) -> str:
        """With the realm."""
        return f"{name}@{REALM}"

    def keytab(self, name: str) -> Path:
        """The keytab of one principal."""
        return self.folder / f"{name.replace('/', '_')}.keytab"

    def add(self, name: str) -> Path:
        """A new principal with a random key; its keytab."""
        self._call("add_principal", principal=self.principal(name), keytab=str(self.keytab(name)))
        return self.keytab(name)

    def change_key(self, name: str) -> None:
        """From now on its keytab is wrong."""
        self._call("change_key", principal=self.principal(name))

    def remove(self, name: str) -> None:
        """The realm does not know it any more; its keytab stays."""
        self._call("remove_principal", principal=self.principal(name))

    def ticket(self, name: str, cache: Path, lifetime_s: int | None = None) -> Path:
        """Write a ticket cache, as `kinit -k` does; `lifetime_s` seconds, a day if None."""
        options = {"keytab": str(self.keytab(name)), "cache": str(cache), "lifetime_s": lifetime_s}
        self._call("kinit", principal=self.principal(name), **options)
        return cache

    def expired_ticket(self, name: str, cache: Path) -> Path:
        """A ticket cache whose ticket is over."""
        self.ticket(name, cache, lifetime_s=3)  # the KDC, too, has to come before its end
        end = time.time() + 4  # tickets have whole seconds
        wait_until(lambda: time.time() > end, what="the ticket is over")
        return cache

    def _call(self, command: str, **arguments: object) -> None:
        self._process.call(command, arguments, PATIENCE)

    def close(self) -> None:
        """End it."""
        self._process.close()
