"""What the servers of a secure lab are configured with: Kerberos, TLS, access control."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from .config import ZOOKEEPER_SUPER, Site
from .kdc import ADMIN, HOST, Kdc
from .stores import PASSWORD, Stores

_ACCESS = "org.apache.hadoop.hbase.security.access.AccessController"
_TOKENS = "org.apache.hadoop.hbase.security.token.TokenProvider"
_FIRST = {
    "hbase.coprocessor.master.classes": (_ACCESS,),
    "hbase.coprocessor.region.classes": (_TOKENS, _ACCESS),
    "hbase.coprocessor.regionserver.classes": (_ACCESS,),
}
"""HBase's own coprocessors, which come before those of a cluster."""
_GROUPS = {ADMIN: "supergroup", "hbase": "supergroup", "status": "status", "reader": "reader", "nobody": "nobody"}
"""HBase is a superuser of HDFS, as nobody makes its folder before it starts."""


@dataclass(frozen=True)
class Security:
    """The realm and the key stores of a lab."""

    kdc: Kdc
    stores: Stores

    def _who(self, service: str) -> str:
        return self.kdc.principal(f"{service}/{HOST}")

    def _key(self, service: str) -> str:
        return str(self.kdc.keytab(f"{service}/{HOST}"))

    def zookeeper(self) -> dict[str, str]:
        """More of a zoo.cfg. Who is authenticated has the short name that HBase's ACLs name."""
        return {
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "kerberos.removeHostFromPrincipal": "true",
            "kerberos.removeRealmFromPrincipal": "true",
        }

    def zookeeper_jaas(self) -> str:
        """The text of the ZooKeeper server's JAAS configuration."""
        options = {"useKeyTab": "true", "storeKey": "true", "useTicketCache": "false"}
        quoted = {"keyTab": self._key("zookeeper"), "principal": self._who("zookeeper")}
        lines = [f"  {key}={value}" for key, value in options.items()]
        lines += [f'  {key}="{value}"' for key, value in quoted.items()]
        module = "com.sun.security.auth.module.Krb5LoginModule required"
        return "\n".join(["Server {", f"  {module}", *lines]) + ";\n};\n"

    def zookeeper_options(self, jaas: Path) -> tuple[str, ...]:
        """Of the ZooKeeper server's JVM. No ACL holds `Cluster` itself, which takes znodes away."""
        digest = base64.b64encode(hashlib.sha1(ZOOKEEPER_SUPER.encode()).digest()).decode()
        super_user = f"{ZOOKEEPER_SUPER.partition(':')[0]}:{digest}"
        return (
            f"-Djava.security.auth.login.config={jaas}",
            f"-Dzookeeper.DigestAuthenticationProvider.superDigest={super_user}",
        )

    def core_site(self) -> dict[str, str]:
        return {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            "hadoop.user.group.static.mapping.overrides": ";".join(
                f"{user}={group}" for user, group in _GROUPS.items()
            ),
            # The Thrift server acts for whoever has authenticated to it.
            "hadoop.proxyuser.hbase.hosts": "*",
            "hadoop.proxyuser.hbase.groups": "*",
        }

    def hdfs_site(self) -> dict[str, str]:
        """Without privileged ports: data transfer is protected by SASL, and the web servers speak HTTPS only."""
        return {
            "dfs.permissions.enabled": "true",
            "dfs.block.access.token.enable": "true",
            "dfs.data.transfer.protection": "authentication",
            "dfs.http.policy": "HTTPS_ONLY",
            "dfs.namenode.kerberos.principal": self._who("nn"),
            "dfs.datanode.kerberos.principal": self._who("dn"),
            "dfs.web.authentication.kerberos.principal": self._who("HTTP"),
        }

    def hdfs_server(self) -> dict[str, str]:
        return {
            "dfs.namenode.keytab.file": self._key("nn"),
            "dfs.datanode.keytab.file": self._key("dn"),
            "dfs.web.authentication.kerberos.keytab": self._key("HTTP"),
            # From Hadoop 3.3 on WebHDFS's filter, too, is configured by these, and simple by default.
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": self._who("HTTP"),
            "hadoop.http.authentication.kerberos.keytab": self._key("HTTP"),
        }

    def hbase_client(self) -> dict[str, str]:
        return {
            "hbase.security.authentication": "kerberos",
            "hbase.security.authorization": "true",
            "hbase.master.kerberos.principal": self._who("hbase"),
            "hbase.regionserver.kerberos.principal": self._who("hbase"),
            "hbase.thrift.kerberos.principal": self._who("hbase"),
            "hbase.thrift.spnego.principal": self._who("HTTP"),
            "hbase.thrift.security.qop": "auth",
        }

    def hbase_server(self, site: Site) -> dict[str, str]:
        """More of what a server is configured with otherwise."""
        return {
            **self.hbase_client(),
            "hbase.master.keytab.file": self._key("hbase"),
            "hbase.regionserver.keytab.file": self._key("hbase"),
            "hbase.thrift.keytab.file": self._key("hbase"),
            "hbase.thrift.spnego.keytab.file": self._key("HTTP"),
            "hbase.zookeeper.client.kerberos.principal": self._who("hbase"),
            "hbase.zookeeper.client.keytab.file": self._key("hbase"),
            "hbase.superuser": f"{ADMIN},status",
            **site,
            **{key: ",".join([*classes, *filter(None, [site.get(key)])]) for key, classes in _FIRST.items()},
        }

    def admin(self) -> dict[str, str]:
        """How `LabAdmin` logs in."""
        return {"lab.admin.principal": self.kdc.principal(ADMIN), "lab.admin.keytab": str(self.kdc.keytab(ADMIN))}

    def ssl_server(self) -> dict[str, str]:
        """An ssl-server.xml."""
        return self._store("ssl.server.keystore", "key") | {"ssl.server.keystore.keypassword": PASSWORD}

    def ssl_client(self) -> dict[str, str]:
        """An ssl-client.xml."""
        return self._store("ssl.client.truststore", "trust")

    def _store(self, prefix: str, which: str) -> dict[str, str]:
        path = {"key": self.stores.key, "trust": self.stores.trust}[which]
        return {f"{prefix}.type": "pkcs12", f"{prefix}.location": str(path), f"{prefix}.password": PASSWORD}
