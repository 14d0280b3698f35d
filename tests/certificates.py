"""Certificates for servers on loopback, by the openssl command."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certificate(folder: Path, name: str, *, authority: bool = True) -> Path:
    """A key with a certificate for this host (`DNS:…`, `IP:…`), signed by itself; that alone in `….crt`.

    `authority`: whether it says that it may sign others, which those that keytool makes do not.
    """
    path = folder / f"{name.replace(':', '-')}.pem"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(path)]
    command = ["openssl", "req", "-x509", *key, "-days", "1", "-out", f"{path}.crt", "-subj", "/CN=lab"]
    command += ["-addext", f"subjectAltName={name}"]
    command += [] if authority else ["-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path
