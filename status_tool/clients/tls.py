"""TLS as a client: certificates and host names are always verified, against the authorities that the user names."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from status_tool.errors import ConfigurationError
from status_tool.printable import safe


def read_authorities(path: Path) -> str:
    """The certificates (PEM) in a file, as text, so that executors need no such file.

    Raises `ConfigurationError` for anything else.
    """
    name = f"--cacert {safe(str(path))}"
    try:
        text = path.read_text(encoding="ascii")
        if not text.strip() or not tls_context(text).cert_store_stats()["x509"]:  # or a server's own, self-signed
            raise _no_certificates(name)
    except OSError as error:
        if isinstance(error, ssl.SSLError):
            raise _no_certificates(name) from None
        raise ConfigurationError(f"cannot read {name}: {error.strerror}") from None
    except ValueError:
        raise _no_certificates(name) from None
    return text


def _no_certificates(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} holds no certificates in PEM form: keytool -exportcert -rfc -keystore TRUSTSTORE -alias NAME writes "
        "one of a Java truststore"
    )


def tls_context(authorities: str) -> ssl.SSLContext:
    """What a client verifies servers by: these authorities (PEM) alone, or if empty the environment's or system's."""
    if authorities.strip():
        return ssl.create_default_context(cadata=authorities)
    bundle = ca_bundle()
    if bundle is None:
        return ssl.create_default_context()
    folder = os.path.isdir(bundle)
    return ssl.create_default_context(cafile=None if folder else bundle, capath=bundle if folder else None)


def ca_bundle() -> str | None:
    """Where the certificates of trusted authorities are: what requests' users set, else the system's own."""
    system = ssl.get_default_verify_paths()
    named = (os.environ.get("REQUESTS_CA_BUNDLE"), os.environ.get("CURL_CA_BUNDLE"))
    return next((where for where in (*named, system.cafile, system.capath) if where), None)


def distrust(error: BaseException) -> str | None:
    """Why TLS with a server failed, and what to do; None where the error is not about TLS."""
    cause = tls_error(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        reason = cause.verify_message.rstrip(".")
        if "match" in reason:
            return f"its certificate is for another host ({reason}): use the name in its certificate"
        return f"its certificate is not trusted ({reason}): --cacert FILE names the authorities (PEM)"
    if cause is not None and cause.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return "it does not speak TLS there"
    return None


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """OpenSSL's reason, however deeply wrapped."""
    seen: list[BaseException] = [error]
    for one in seen:
        if isinstance(one, ssl.SSLError):
            return one
        inner = (*one.args[:1], one.__cause__, one.__context__)
        seen += [other for other in inner if isinstance(other, BaseException) and other not in seen]
    return None
