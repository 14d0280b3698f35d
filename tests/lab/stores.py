"""Key stores of servers on loopback, by the JDK's keytool."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from .classpath import java
from .errors import LabError

PASSWORD = "lab-store-password"
_NAMES = "san=dns:localhost,ip:127.0.0.1"


@dataclass(frozen=True)
class Stores:
    """One self-signed certificate for `localhost`: as key store and trust store of JVMs, and as PEM for others."""

    key: Path
    trust: Path
    ca: Path


def make_stores(folder: Path) -> Stores:
    """Make them; LabError if keytool refuses."""
    folder.mkdir(parents=True)
    stores = Stores(folder / "key.p12", folder / "trust.p12", folder / "ca.pem")
    _keytool("-genkeypair", stores.key, "-keyalg", "EC", "-dname", "CN=localhost", "-ext", _NAMES, "-validity", "2")
    _keytool("-exportcert", stores.key, "-rfc", "-file", str(stores.ca))
    _keytool("-importcert", stores.trust, "-noprompt", "-file", str(stores.ca))
    return stores


def _keytool(command: str, store: Path, *arguments: str) -> None:
    tool = str(Path(java()).with_name("keytool"))
    named = [tool, command, "-alias", "lab", "-keystore", str(store), "-storetype", "PKCS12", "-storepass", PASSWORD]
    done = subprocess.run([*named, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"keytool {command} ended with {done.returncode}: {done.stdout}{done.stderr}")
