"""Key stores of servers on loopback."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..certificates import certificate
from .classpath import java
from .errors import LabError

PASSWORD = "lab-store-password"


@dataclass(frozen=True)
class Stores:
    """A certificate for `localhost`, which is its own authority: for JVMs, and as PEM for others."""

    key: Path
    trust: Path
    ca: Path


def make_stores(folder: Path) -> Stores:
    """Make them; LabError if openssl or keytool refuses."""
    folder.mkdir(parents=True)
    pem = certificate(folder, "DNS:localhost,IP:127.0.0.1")
    stores = Stores(folder / "key.p12", folder / "trust.p12", pem.with_name(f"{pem.name}.crt"))
    password = ("-passout", f"pass:{PASSWORD}")
    _run("openssl", "pkcs12", "-export", "-name", "lab", "-in", str(pem), "-out", str(stores.key), *password)
    # Java trusts only what keytool has marked as trusted.
    keytool = str(Path(java()).with_name("keytool"))
    store = ("-keystore", str(stores.trust), "-storetype", "PKCS12", "-storepass", PASSWORD)
    _run(keytool, "-importcert", "-noprompt", "-alias", "lab", "-file", str(stores.ca), *store)
    return stores


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{command[0]} {command[1]} ended with {done.returncode}: {done.stdout}{done.stderr}")
