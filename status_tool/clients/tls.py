"""TLS as a client: certificates and host names are always verified, against the authorities that the user names.

The client shows a certificate of its own where the user gives one and a server asks for it (mutual TLS).
"""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from status_tool.errors import ConfigurationError
from status_tool.printable import safe


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom a client trusts, and what it shows of itself; as text, so that executors need no files."""

    authorities: str = field(default="", repr=False)
    """Certificates (PEM) that servers are verified by; empty: the environment's or the system's."""
    certificate: str = field(default="", repr=False)
    """The client's own certificate with its chain and private key (PEM); empty: none."""


DEFAULT_TRUST = Trust()


def read_trust(cacert: Path | None, cert: Path | None = None) -> Trust:
    """Read the files of `--cacert` and `--cert`.

    Raises `ConfigurationError` if they are not that.
    """
    return Trust("" if cacert is None else _authorities(cacert), "" if cert is None else _certificate(cert))


def _authorities(path: Path) -> str:
    name = f"--cacert {safe(str(path))}"
    try:
        text = path.read_text(encoding="ascii")
        # A server's own certificate, signed by itself, will do.
        if not text.strip() or not tls_context(Trust(text)).cert_store_stats()["x509"]:
            raise _no_certificates(name)
    except (ssl.SSLError, ValueError):
        raise _no_certificates(name) from None
    except OSError as error:
        raise ConfigurationError(f"cannot read {name}: {error.strerror}") from None
    return text


def _certificate(path: Path) -> str:
    name = f"--cert {safe(str(path))}"
    try:
        text = path.read_text(encoding="ascii")
        tls_context(Trust(certificate=text))
    except _LockedKey:
        raise _no_pair(name, "its key needs a password") from None
    except ssl.SSLError:
        raise _no_pair(name, "no pair of certificate and key") from None
    except OSError as error:
        raise ConfigurationError(f"cannot read {name}: {error.strerror}") from None
    except ValueError:
        raise _no_pair(name, "no text") from None
    return text


def _no_pair(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} has to hold a certificate and its private key in PEM form, the key without a password ({why}): "
        "keytool -importkeystore -srckeystore KEYSTORE -destkeystore own.p12 -deststoretype PKCS12, then "
        "openssl pkcs12 -in own.p12 -nodes writes those of a Java keystore"
    )


def _no_certificates(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} holds no certificates in PEM form: keytool -exportcert -rfc -keystore TRUSTSTORE -alias NAME writes "
        "one of a Java truststore"
    )


def tls_context(trust: Trust) -> ssl.SSLContext:
    """Return a client's context.

    It verifies servers by the named authorities alone, else by the environment's or system's.
    """
    context = _verifying(trust.authorities)
    if trust.certificate:
        _show(context, trust.certificate)
    return context


def _show(context: ssl.SSLContext, certificate: str) -> None:
    """Load the certificate from a temporary file, as OpenSSL wants one.

    Only this user can read it, and it is deleted.
    """
    with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".pem") as file:
        file.write(certificate)
        file.flush()
        # Without a function OpenSSL would ask the terminal for the password of a key that has one.
        context.load_cert_chain(file.name, password=_refuse_password)


class _LockedKey(Exception):
    """A private key needs a password."""


def _refuse_password() -> str:
    raise _LockedKey


def _verifying(authorities: str) -> ssl.SSLContext:
    if authorities.strip():
        return ssl.create_default_context(cadata=authorities)
    bundle = ca_bundle()
    if bundle is None:
        return ssl.create_default_context()
    folder = os.path.isdir(bundle)
    return ssl.create_default_context(cafile=None if folder else bundle, capath=bundle if folder else None)


def ca_bundle() -> str | None:
    """Return the path of the trusted authorities: the variables that requests reads, else the system's default."""
    system = ssl.get_default_verify_paths()
    named = (os.environ.get("REQUESTS_CA_BUNDLE"), os.environ.get("CURL_CA_BUNDLE"))
    return next((where for where in (*named, system.cafile, system.capath) if where), None)


_WANTS_CERTIFICATE = ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_BAD_CERTIFICATE")
"""OpenSSL's reasons; the second is what Java says where none was sent."""
_DISTRUSTS = ("TLSV1_ALERT_UNKNOWN_CA", "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "SSLV3_ALERT_CERTIFICATE_EXPIRED")


def distrust(error: BaseException) -> str | None:
    """Return why TLS with a server failed, and what to do; None if the error is not about TLS."""
    cause = tls_error(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        reason = cause.verify_message.rstrip(".")
        if "match" in reason:
            return f"its certificate is for another host ({reason}): use the name in its certificate"
        return f"its certificate is not trusted ({reason}): --cacert FILE names the authorities (PEM)"
    if cause is not None and cause.reason in _WANTS_CERTIFICATE:
        return "it asks for a client's certificate: --cert FILE names yours, with its key (PEM)"
    if cause is not None and cause.reason in _DISTRUSTS:
        return f"it does not trust the certificate in --cert ({cause.reason}): use one of an authority that it knows"
    if cause is not None and cause.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return "it does not speak TLS there"
    return None


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return OpenSSL's error, however deeply wrapped; None without one."""
    seen: list[BaseException] = [error]
    for one in seen:
        if isinstance(one, ssl.SSLError):
            return one
        inner = (*one.args[:1], one.__cause__, one.__context__)
        seen += [other for other in inner if isinstance(other, BaseException) and other not in seen]
    return None
