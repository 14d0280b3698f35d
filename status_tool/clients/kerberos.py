"""Kerberos as a client: whose tickets, for which service, and what each failure means in one line.

Tickets are those of the user's cache (`KRB5CCNAME`), or this process's own, from a keytab: then in a private folder, to
which `KRB5CCNAME` points for this process and for what it starts, and replaced before they expire. Nothing is asked of
a KDC before a server wants a ticket.
"""

from __future__ import annotations

import atexit
import importlib
import ipaddress
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.temporary import held_folder, let_go

TICKETS_VARIABLE = "KRB5CCNAME"
HOST_PATTERN = "_HOST"
SPNEGO_MECHANISM = "1.3.6.1.5.5.2"
_RENEWED_AT = 0.75
"""The share of a ticket's life after which another one is taken."""
_RETRY_S = 60.0
_LEAST_S = 1.0
_KRB5_BASE = -1765328384
"""Kerberos' error codes count from here (com_err's table `krb5`)."""
_NO_CREDENTIALS, _CREDENTIALS_EXPIRED = 7, 11
"""GSS_S_NO_CRED and GSS_S_CREDENTIALS_EXPIRED, without their 16 bits of shift."""


@dataclass(frozen=True, slots=True)
class ServiceName:
    """A server's principal as a site file has it (`hbase/_HOST@REALM`), and the host that it is asked for at."""

    principal: str
    host: str

    def __str__(self) -> str:
        return self.principal.replace(HOST_PATTERN, self.host)

    @property
    def service(self) -> str:
        """The first part."""
        return self.principal.partition("@")[0].partition("/")[0]

    def name(self) -> Any:
        """Return the name as GSSAPI takes it.

        A host in place of `_HOST` becomes canonical as krb5.conf says (`rdns` and others).

        The realm is the site file's, else that of the host's domain.
        """
        gssapi = gss()
        first, _, realm = self.principal.partition("@")
        host = first.partition("/")[2]
        asked = by_name(self.host if host in ("", HOST_PATTERN) else host)
        named = gssapi.Name(f"{self.service}@{asked}", gssapi.NameType.hostbased_service)
        if not realm:
            return named
        if host in ("", HOST_PATTERN):
            host = str(named.canonicalize(gssapi.MechType.kerberos)).partition("@")[0].partition("/")[2]
        # Hadoop's SecurityUtil.replacePattern lowers the host for the server's own login, too.
        return gssapi.Name(f"{self.service}/{host.lower()}@{realm}", gssapi.NameType.kerberos_principal)


def by_name(host: str) -> str:
    """Return the name of a host given by name or address: a principal has no address, and Hadoop resolves one, too."""
    with suppress(ValueError, OSError):
        return socket.gethostbyaddr(str(ipaddress.ip_address(host)))[0]
    return host


def gss() -> Any:
    """Return the package `gssapi`; raises `ConfigurationError` if it is missing."""
    return package("gssapi", "Kerberos")


def package(name: str, whose: str) -> Any:
    """Return a package of the extra; raises `ConfigurationError` if it is missing."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError):
        raise ConfigurationError(
            f"{whose} needs the package {name}, which is not installed here: pip install 'status-tool[kerberos]', with "
            "Kerberos' own library and headers (Debian: libkrb5-dev)"
        ) from None


class _Login:
    """The principal whose tickets this process uses, and its own login from a keytab."""

    def __init__(self, principal: str, keytab: Path | None) -> None:
        self.principal, self.keytab = principal, keytab
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._checked = False
        self._until = 0.0
        self._held: tuple[Path, int] | None = None
        self._before = os.environ.get(TICKETS_VARIABLE)
        if keytab is not None:
            try:
                self._held = held_folder()
            except OSError as error:
                raise ConfigurationError(f"cannot create a folder for Kerberos tickets: {error.strerror}") from None
            # A process that is started before the first login inherits the place.
            os.environ[TICKETS_VARIABLE] = f"FILE:{self._held[0]}/tickets"

    def make_ready(self) -> None:
        """Log in if that has not happened yet, or look at the user's cache."""
        with self._lock:
            if self.keytab is None:
                if not self._checked:
                    self._check_cache()
                    self._checked = True
            # This is the first login, or one after `_renew` has failed until the tickets ran out: here its error has a
            # reader.
            elif self._until <= time.time():
                first = self._until == 0.0
                self._log_in()
                if first:
                    threading.Thread(target=self._renew, name="kerberos-login", daemon=True).start()

    def end(self) -> None:
        """Remove the tickets."""
        self._ended.set()
        if self._held is None:
            return
        let_go(*self._held)
        if self._before is None:
            os.environ.pop(TICKETS_VARIABLE, None)
        else:
            os.environ[TICKETS_VARIABLE] = self._before

    def _check_cache(self) -> None:
        gssapi = gss()
        try:
            held = str(gssapi.Credentials(usage="initiate", mechs=[gssapi.MechType.kerberos]).name)
        except gssapi.exceptions.GSSError as error:
            raise ConnectionFailed(f"--principal {self.principal}: {why_no_ticket(error)}") from None
        realm = held.rpartition("@")[2]
        if held != (self.principal if "@" in self.principal else f"{self.principal}@{realm}"):
            raise ConfigurationError(
                f"--principal {self.principal}: the ticket cache is that of {held} (klist): kinit {self.principal}, or "
                "add --keytab FILE"
            )

    def _log_in(self) -> None:
        """Get tickets for the keytab's key. They replace the earlier ones at once."""
        krb5 = package("krb5", "--keytab")
        assert self._held is not None
        folder = self._held[0]
        file, new = folder / "tickets", folder / "new"
        try:
            context = krb5.init_context()
            client = krb5.parse_name_flags(context, self.principal.encode())
            options = krb5.get_init_creds_opt_alloc(context)
            keytab = krb5.kt_resolve(context, f"FILE:{self.keytab}".encode())
            tickets = krb5.get_init_creds_keytab(context, client, options, keytab=keytab)
            cache = krb5.cc_resolve(context, f"FILE:{new}".encode())
            krb5.cc_initialize(context, cache, client)
            krb5.cc_store_cred(context, cache, tickets)
            # `cc_initialize` empties a cache. Java and other threads read it at any time, and find the old tickets or
            # the new.
            os.replace(new, file)
        except krb5.Krb5Error as error:
            what = f"cannot log in as {self.principal} with --keytab {self.keytab}"
            raise ConnectionFailed(f"{what}: {_why(error.err_code - _KRB5_BASE, _words(error))}") from None
        except OSError as error:
            raise ConfigurationError(f"cannot write Kerberos tickets to {folder}: {error.strerror}") from None
        self._until = float(tickets.times.endtime)

    def _renew(self) -> None:
        """Renew the ticket until the process ends. A failure that lasts shows where a ticket is needed next."""
        wait = (self._until - time.time()) * _RENEWED_AT
        while not self._ended.wait(max(_LEAST_S, wait)):
            try:
                with self._lock:
                    self._log_in()
                wait = (self._until - time.time()) * _RENEWED_AT
            except (ConnectionFailed, ConfigurationError):
                wait = min(_RETRY_S, max(_LEAST_S, (self._until - time.time()) / 2))


_login: _Login | None = None
"""The process's one login; none: the user's ticket cache as it is."""


def use(principal: str | None, keytab: Path | None) -> None:
    """Use this principal's tickets from now on; with neither argument, those of the user's cache.

    Raises `ConfigurationError` for a keytab that cannot be read or has no key of that principal.
    """
    global _login
    wanted = (principal, None if keytab is None else keytab.absolute())
    if _login is not None and wanted == (_login.principal, _login.keytab):
        return  # A round of a watch: what was started before knows where the tickets are.
    forget_tickets()
    if keytab is not None and principal is None:
        raise ConfigurationError("--keytab needs --principal NAME: whose key in it is meant (klist -k FILE shows them)")
    if principal is None:
        return
    if keytab is not None:
        _check_keytab(principal, keytab)
    _login = _Login(principal, wanted[1])


@atexit.register
def forget_tickets() -> None:
    """Return to the user's ticket cache, and remove the tickets of a keytab."""
    global _login
    login, _login = _login, None
    if login is not None:
        login.end()


def make_ready() -> None:
    """Make sure that there is a ticket. Raises `ConfigurationError` and `ConnectionFailed` that say what to do."""
    if _login is not None:
        _login.make_ready()


def _check_keytab(principal: str, keytab: Path) -> None:
    """Check a keytab for the usual mistakes, which need no KDC, before anything else happens."""
    name = f"--keytab {keytab}"
    try:
        with keytab.open("rb") as file:
            head = file.read(2)
    except OSError as error:
        raise ConfigurationError(f"cannot read {name}: {error.strerror}") from None
    if head not in (b"\x05\x01", b"\x05\x02"):
        raise ConfigurationError(f"{name} is not a keytab: `ktutil` or `kadmin ktadd` writes one")
    krb5 = package("krb5", "--keytab")
    try:
        context = krb5.init_context()
        client = krb5.parse_name_flags(context, principal.encode())
        keys = {bytes(entry.principal.name) for entry in krb5.kt_resolve(context, f"FILE:{keytab.absolute()}".encode())}
    except krb5.Krb5Error as error:
        raise ConfigurationError(f"--principal {principal}, {name}: {_words(error)}") from None
    if bytes(client.name) not in keys:
        found = ", ".join(sorted(key.decode(errors="replace") for key in keys)) or "no key at all"
        raise ConfigurationError(f"{name} has no key of {bytes(client.name).decode()} (klist -k): it has {found}")


def why_no_ticket(error: Any, service: ServiceName | None = None) -> str:
    """Return the meaning of a GSSAPI error of the client's own side (`gssapi.exceptions.GSSError`), and the way out."""
    # Kerberos' codes are negative, GSSAPI's minor ones the same 32 bits without a sign.
    major, minor = (error.maj_code >> 16) & 0xFF, error.min_code & 0xFFFFFFFF
    code = minor - (_KRB5_BASE & 0xFFFFFFFF)
    if code not in _MEANINGS and major == _NO_CREDENTIALS:
        code = _FILE_NOT_THERE
    if code not in _MEANINGS and major == _CREDENTIALS_EXPIRED:
        code = _EXPIRED
    return _why(code, _gss_words(error), service)


_UNKNOWN_CLIENT, _UNKNOWN_SERVER, _REVOKED, _KEY_EXPIRED, _WRONG_KEY = 6, 7, 18, 23, 24
_BAD_INTEGRITY = 31
"""Message of Kerby in place of `_WRONG_KEY`: what was encrypted with the key cannot be decrypted."""
_EXPIRED, _NOT_YET, _SKEW, _WRONG_REALM = 32, 33, 37, 68
_NO_CACHE, _REPLY_SKEW, _UNKNOWN_REALM, _NO_KDC, _NO_KEY = 141, 148, 154, 156, 181
_FILE_FORBIDDEN, _FILE_NOT_THERE, _NO_REALM_ADDRESS, _NO_DEFAULT_REALM = 194, 195, 220, 224
_NO_TICKET_WORDS = "there is no Kerberos ticket (klist): kinit, or --principal NAME --keytab FILE"
_SKEW_WORDS = "this host's clock differs from the KDC's by more than five minutes: set it (NTP), then kinit"
_KDC_WORDS = "no KDC of the realm can be reached: check its kdc in krb5.conf and the network"
_MEANINGS = {
    _UNKNOWN_CLIENT: "the KDC does not know this principal: check its name and realm (klist -k shows a keytab's)",
    _UNKNOWN_SERVER: (
        "the KDC does not know the server's principal {service}: give the host by the name in its principal, and "
        "check the principal and realm in the site files (kvno {service})"
    ),
    _REVOKED: "the KDC has locked or disabled this principal: ask who runs the KDC",
    _KEY_EXPIRED: "the principal's password has expired: kpasswd",
    **dict.fromkeys(
        (_WRONG_KEY, _BAD_INTEGRITY),
        "the KDC takes another key: the keytab is older than the principal's key, make it anew (kadmin ktadd)",
    ),
    _EXPIRED: "the Kerberos ticket has expired (klist): kinit, or --principal NAME --keytab FILE for long runs",
    _NOT_YET: "the Kerberos ticket is not valid yet: set this host's clock (NTP), then kinit",
    _SKEW: _SKEW_WORDS,
    _REPLY_SKEW: _SKEW_WORDS,
    _WRONG_REALM: "the principal is of another realm: check the realms in krb5.conf ([realms], [domain_realm])",
    _NO_CACHE: _NO_TICKET_WORDS,
    _FILE_NOT_THERE: _NO_TICKET_WORDS,
    _FILE_FORBIDDEN: "the ticket cache (KRB5CCNAME) cannot be read by this user: kinit as this user",
    _NO_KEY: "the keytab has no key of it (klist -k)",
    _UNKNOWN_REALM: "krb5.conf names no KDC of the realm: check --principal's realm, [realms] and [domain_realm]",
    _NO_REALM_ADDRESS: _KDC_WORDS,
    _NO_KDC: _KDC_WORDS,
    _NO_DEFAULT_REALM: "krb5.conf has no default_realm: set it, or give principals with their @REALM",
}


def _why(code: int, words: str, service: ServiceName | None = None) -> str:
    """Return the message of a Kerberos error code, in one line; `words` are the library's own."""
    meaning = _MEANINGS.get(code)
    if meaning is None:
        return f"{words}: see klist, and KRB5_TRACE=/dev/stderr for each step"
    return meaning.replace("{service}", "of the server" if service is None else canonical(service))


def canonical(service: ServiceName) -> str:
    """Return the name that the KDC is asked for, as far as it can be known."""
    with suppress(Exception):
        return str(service.name())
    return str(service)


def _words(error: Any) -> str:
    """Return the library's message in one line."""
    said = getattr(error, "message", None) or str(error)
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return (text.strip().splitlines() or [type(error).__name__])[0][:300]


def _gss_words(error: Any) -> str:
    """Return the mechanism's message, else the one of GSSAPI."""
    with suppress(Exception):
        for code, is_major in ((error.min_code, False), (error.maj_code, True)):
            if code and (said := error.get_all_statuses(code, is_major)):
                return str(said[-1])[:300]
    return _words(error)
