"""The two legs of WebHDFS: HdfsCLI (package `hdfs`) for NameNodes, and urllib3 or http.client for DataNodes.

HdfsCLI composes the request and authenticates the user: by name, by delegation token, or by Kerberos. What an answer
means, and when and where a request is retried, is decided here and in `webhdfs.py`: each client knows one URL, so that
HdfsCLI's own failover between NameNodes (once each, without a pause) never takes place.

Used of HdfsCLI's internals (2.7, pinned by pyproject.toml, `tests/unit/test_hdfscli.py`): `_session`, `_timeout`,
`_Request.to_method`, by which an operation becomes a call, and the overridable `Client._request` and `Client.resolve`.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

import requests
import urllib3
from hdfs.client import Client, InsecureClient, TokenClient, _Request
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies, select_proxy

from status_tool.clients.kerberos import HOST_PATTERN, ServiceName, by_name, make_ready
from status_tool.clients.sasl import negotiate_header
from status_tool.clients.tls import DEFAULT_TRUST, Trust, distrust, tls_context
from status_tool.errors import ConfigurationError, ConnectionFailed

OPERATIONS = {
    "GETFILESTATUS": "GET",
    "LISTSTATUS": "GET",
    "LISTSTATUS_BATCH": "GET",
    "GETCONTENTSUMMARY": "GET",
    "GETFILECHECKSUM": "GET",
    "GET_BLOCK_LOCATIONS": "GET",
    "OPEN": "GET",
    "GETDELEGATIONTOKEN": "GET",
    "RENEWDELEGATIONTOKEN": "PUT",
    "CANCELDELEGATIONTOKEN": "PUT",
}
"""Operations of a NameNode, by method."""
REDIRECTED = ("OPEN", "GETFILECHECKSUM")
"""Operations that a NameNode leaves to a DataNode."""
BUSY = (429, 503, 504)
"""HTTP statuses of a server that may answer later."""
UNAUTHORIZED = "Unauthorized"
"""The name of the refusal for HTTP status 401."""
ELSEWHERE = ("StandbyException",)
LATER = ("RetriableException", "SafeModeException")

_TOKEN = re.compile(r"\b(delegation|token)=[^&\s'\")]+")
"""A delegation token in a URL, which no error may show."""

# No redirect is followed: the DataNode leg has its own client.
_CALLS: Mapping[str, Callable[..., requests.Response]] = {
    op: _Request(method, allow_redirects=False).to_method(op) for op, method in OPERATIONS.items()
}


_REASONS = re.compile(
    r" \(is not a directory\)|under construction|Fail to get block|Could not obtain block|Failed on local exception"
    r"| not found\."
)
"""Words by which refusals are told apart. They may follow a path that is long, or has several lines."""
_STACK = re.compile(r"\n\s+at ")
_LONGEST = 300
_LONG_URL = 3_500
"""A DataNode refuses requests of which the first line is longer than 4,096 bytes, user and token included."""
_BELOW_A_FILE = re.compile(r"/.* \(is not a directory\)$", re.M)
"""How `FSPermissionChecker` refuses a path below a file. Where a permission is denied, other words come first."""


class Refused(Exception):
    """HDFS answers with a refusal for this path. `name` is the Java exception's simple name."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name

    @property
    def is_absent(self) -> bool:
        """Return True if the path does not exist, or a file stands where it has a folder."""
        return self.name == "FileNotFoundException" or _BELOW_A_FILE.match(str(self)) is not None


class Failover(Exception):
    """Another NameNode, or the same one later, may answer."""


class Untold(Failover):
    """Failure of a web server for its JMX beans, by which the active NameNode is told from others."""


class NameNodeClient(Client):
    """HdfsCLI's client raising our errors, so that its own error handling never applies."""

    def resolve(self, hdfs_path: str) -> str:
        """Return the path unchanged. `#LATEST` is an ordinary name, and no path is relative to a home directory."""
        return hdfs_path

    def ask(self, op: str, path: str, **params: Any) -> dict[str, Any]:
        """Return the NameNode's JSON; `{"Location": …}` where it redirects to a DataNode.

        Raises `Failover`, and `Refused` also for the answer of anything but a NameNode.
        """
        response = _CALLS[op](self, path, **params)
        if 300 <= response.status_code < 400:
            location = response.headers.get("Location") or ""
            # A login page, or the step from http to https, has a redirect for every operation.
            if op not in REDIRECTED or not location:
                raise no_namenode(f"{op} is redirected to {server_of(location) or 'nowhere'}")
            return {"Location": location}  # A NameNode that does not know `noredirect` for this operation.
        try:
            # CANCELDELEGATIONTOKEN is answered without a body.
            answer = json.loads(response.content or b"{}")
        except ValueError:
            raise no_namenode("the answer is not JSON") from None
        if not isinstance(answer, dict):
            raise no_namenode("the answer is not a JSON object")
        return answer

    def bean(self, name: str) -> dict[str, Any] | None:
        """Return a JMX bean of the same web server; None if it shows none, or not to us.

        Raises `Failover` if the server does not answer, or not now: that says nothing about the bean.
        """
        try:
            response = self._session.get(
                f"{self.url}/jmx", params={"qry": name}, timeout=self._timeout, allow_redirects=False
            )
        except (requests.RequestException, OSError) as error:
            raise Failover(reason(error)) from None
        if response.status_code >= 500 or response.status_code in BUSY:
            raise Untold(f"HTTP status {response.status_code} for {self.url}/jmx")
        try:
            beans = json.loads(response.content)["beans"] if response.status_code == 200 else []
        except (ValueError, KeyError, TypeError):
            return None
        return dict(beans[0]) if beans and isinstance(beans[0], dict) else None

    def _request(self, method: str, url: str, **kwargs: Any) -> requests.Response:
        try:
            response: requests.Response = super()._request(method, url, **kwargs)
        except (requests.RequestException, OSError) as error:
            raise Failover(reason(error)) from None
        if response.status_code >= 400:
            refused = refusal_of(response.status_code, response.content, url)
            if response.status_code in BUSY or refused.name in (*ELSEWHERE, *LATER):
                raise Failover(f"{refused.name}: {refused}")
            raise refused
        return response


class InsecureNameNode(NameNodeClient, InsecureClient):
    """A client for clusters without Kerberos, which trust the user name that it gives."""


class TokenNameNode(NameNodeClient, TokenClient):
    """A client that authenticates by a delegation token and needs no ticket."""

    def _request(self, method: str, url: str, **kwargs: Any) -> Any:
        try:
            return super()._request(method, url, **kwargs)
        except Refused as refusal:
            # Hadoop's UserProvider wraps it in a SecurityException.
            if refusal.name != UNAUTHORIZED and "InvalidToken" not in f"{refusal.name}: {refusal}":
                raise
            raise ConnectionFailed(
                f"{self.url} does not take this run's delegation token any more ({refusal}): it was cancelled, or has "
                "expired; run again"
            ) from None


class _TrustingAdapter(HTTPAdapter):
    """Verifies servers as `Servers` does: what `requests` itself trusts does not count."""

    def __init__(self, connections: int, trust: Trust, *, tls: bool) -> None:
        self._trust = trust
        self._tls = tls
        super().__init__(pool_connections=1, pool_maxsize=connections, max_retries=0)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        # Only where it is used: reading the system's authorities takes up to 0.1 s of CPU.
        return tls_context(self._trust)

    def init_poolmanager(self, *arguments: Any, **settings: Any) -> None:
        """Add our TLS context to the pool."""
        if self._tls:
            settings["ssl_context"] = self._context
        super().init_poolmanager(*arguments, **settings)

    def proxy_manager_for(self, proxy: str, **settings: Any) -> Any:
        """Add our TLS context to connections through a proxy."""
        return super().proxy_manager_for(proxy, **settings, ssl_context=self._context)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Leave the verification to the context; the base class would add authorities."""
        if url.lower().startswith("https"):
            conn.cert_reqs = "CERT_REQUIRED"


class Session(requests.Session):
    """A session for one server. Proxies and the authorities to trust are the environment's; `~/.netrc` is not sent.

    Calls that carry all that they need (a user's name, a token) go to the connection pool directly. With an `auth` they
    are those of `requests`: from the moment when the server has asked for Kerberos.
    """

    def __init__(self, url: str, connections: int, timeout: tuple[float, float], trust: Trust) -> None:
        """Open a session for `connections` threads. `timeout` and `trust` are those of `Servers`."""
        super().__init__()
        self.mount(url, _TrustingAdapter(connections, trust, tls=server_of(url).startswith("https:")))
        self.proxies.update(_proxies_of(url))
        self.trust_env = False
        self._servers = Servers(connections, timeout, trust)
        self._url = url
        self._guard = threading.Lock()

    def request(self, method: str, url: str, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the answer, which has `status_code`, `content` and `headers`.

        Raises what `requests` raises, and `ConnectionFailed` where the server asks for Kerberos in vain.
        """
        if self.auth is None:
            # `requests` itself costs 0.4 ms of CPU a call, more than all the rest.
            answer = self._plain(url, kwargs) if method == "GET" else super().request(method, url, **kwargs)
            # With a token there is no other way in: executors have no ticket, and `TokenNameNode` says what is wrong
            # with it.
            if answer.status_code != 401 or not _offers_spnego(answer.headers) or "delegation" in self._own:
                return answer
            self._authenticate()
        make_ready()
        try:
            return super().request(method, url, **kwargs)
        except requests.RequestException as error:
            # Of requests_kerberos, which need not be installed.
            if type(error).__name__ != "KerberosExchangeError":
                raise
            raise self._no_ticket(error) from None

    @property
    def _own(self) -> dict[str, Any]:
        """Return the parameters that every call sends."""
        return cast("dict[str, Any]", self.params)  # as HdfsCLI's clients make it

    def _no_ticket(self, error: requests.RequestException) -> ConnectionFailed:
        """Return the reason why there is no ticket."""
        # requests_kerberos swallows its error: the same step again brings it to light.
        try:
            negotiate_header(ServiceName(f"HTTP/{HOST_PATTERN}", urlsplit(self._url).hostname or ""), self._url)
        except ConnectionFailed as told:
            return told
        except ConfigurationError:
            pass
        return ConnectionFailed(
            f"{self._url} requires Kerberos, and there is no ticket for it: kinit ({reason(error)})"
        )

    def _authenticate(self) -> None:
        """Authenticate by SPNEGO from now on, with the ticket of the environment (`KRB5CCNAME`)."""
        try:
            from hdfs.ext.kerberos import KerberosClient
        except ImportError as error:
            raise ConnectionFailed(
                f"{self._url} requires Kerberos (HTTP status 401): pip install 'status-tool[kerberos]', then kinit "
                f"({reason(error)})"
            ) from None
        with self._guard:
            if self.auth is None:
                # JspHelper.checkUsername refuses a `user.name` that is not the ticket's user, and other threads send as
                # soon as they see `auth`.
                self._own.pop("user.name", None)
                host = urlsplit(self._url).hostname or ""
                named = {} if by_name(host) == host else {"hostname_override": by_name(host)}
                KerberosClient(self._url, session=self, **named)  # which only gives the session its `auth`

    def _plain(self, url: str, kwargs: Mapping[str, Any]) -> HttpAnswer:
        query = urlencode({**self._own, **(kwargs.get("params") or {})})
        try:
            # HdfsCLI leaves spaces to requests.
            answer = self._servers.get(f"{url.replace(' ', '%20')}?{query}", headers=kwargs.get("headers"))
        except urllib3.exceptions.HTTPError as error:
            raise requests.ConnectionError(reason(error)) from None
        return HttpAnswer(answer.status, answer.data, answer.headers)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The part of `requests.Response` that is used."""

    status_code: int
    content: bytes
    headers: Mapping[str, str]


def client_of(
    url: str, user: str, connections: int, timeout: tuple[float, float], trust: Trust = DEFAULT_TRUST, token: str = ""
) -> NameNodeClient:
    """Return the client of one NameNode for many threads, by a delegation token where there is one.

    `timeout` and `trust` as for `Servers`.
    """
    session = Session(url, connections, timeout, trust)
    if token:
        return TokenNameNode(url, token, session=session, timeout=timeout)
    return InsecureNameNode(url, user=user, session=session, timeout=timeout)


def _offers_spnego(headers: Mapping[str, str]) -> bool:
    return "negotiate" in (headers.get("WWW-Authenticate") or "").lower()


class Servers:
    """Connections to NameNodes and DataNodes, kept, by proxies where the environment names some."""

    def __init__(self, connections: int, timeout: tuple[float, float], trust: Trust = DEFAULT_TRUST) -> None:
        """Allow `connections` connections to each server. `timeout` is in seconds, to connect and to read.

        `trust`: whom to trust, and the client's own certificate.
        """
        self._settings: dict[str, Any] = {
            "num_pools": 256,
            "maxsize": connections,
            "retries": False,
            "timeout": urllib3.Timeout(connect=timeout[0], read=timeout[1]),
        }
        self._timeout = timeout
        self._trust = trust
        self._by_way: dict[tuple[str | None, bool], urllib3.PoolManager] = {}
        self._proxies: dict[str, str | None] = {}

    def get(self, url: str, **settings: Any) -> urllib3.BaseHTTPResponse:
        """Return the answer to a GET, no redirect followed.

        Raises what urllib3 raises, and `ConnectionFailed` for a server that cannot be trusted: retrying would not help.
        """
        server = server_of(url)
        try:
            pools = self._pools(self._proxy(server), server.startswith("https:"))
            return pools.request("GET", url, redirect=False, **settings)
        except urllib3.exceptions.SSLError as error:
            why = distrust(error)
            if why is None:
                raise
            raise ConnectionFailed(f"{server} cannot be reached: {why}") from None

    def once(self, url: str) -> tuple[int, bytes]:
        """Return status and body of a small answer by a connection of its own.

        A DataNode closes each connection, so that urllib3's pool is no use, and takes twice the CPU. Raises as `get`,
        and what http.client raises.
        """
        server = server_of(url)
        if server.startswith("https:") or self._proxy(server):
            answer = self.get(url)
            return answer.status, answer.data
        to_connect, to_read = self._timeout
        parts = urlsplit(url)
        with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=to_connect)) as connection:
            connection.connect()
            connection.sock.settimeout(to_read)
            connection.request("GET", f"{parts.path}?{parts.query}")
            response = connection.getresponse()
            return response.status, response.read()

    def _proxy(self, server: str) -> str | None:
        if server not in self._proxies:
            self._proxies[server] = proxy_of(server)
        return self._proxies[server]

    def _pools(self, proxy: str | None, tls: bool) -> urllib3.PoolManager:
        found = self._by_way.get((proxy, tls))
        if found is None:
            settings = self._settings | ({"ssl_context": tls_context(self._trust)} if tls else {})
            made = urllib3.ProxyManager(proxy, **settings) if proxy else urllib3.PoolManager(**settings)
            # Two threads may come here at once; both go on with the first one's pools.
            found = self._by_way.setdefault((proxy, tls), made)
        return found


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for a URL (`http_proxy`, `no_proxy`, …), by the rules of requests."""
    proxy: str | None = select_proxy(url, _proxies_of(url))
    return proxy


def _proxies_of(url: str) -> dict[str, str]:
    """Return the environment's proxies by scheme. This machine's loopback has none, as no proxy can reach it."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return {}
    proxies: dict[str, str] = get_environ_proxies(url)
    return proxies


def refusal_of(status: int, data: bytes, url: str = "") -> Refused:
    """Return the refusal in an HDFS server's answer."""
    if status == 401:
        return Refused(UNAUTHORIZED, "it takes neither this user nor a Kerberos ticket (HTTP status 401): see klist")
    try:
        remote = json.loads(data)["RemoteException"]
        return refused(str(remote["exception"]), str(remote.get("message") or ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        long = len(quote(url, "%/:?=&")) > _LONG_URL and status in (400, 414)
        told = ": so long a path is beyond WebHDFS, --hdfs-client native reads it" if long else ""
        return Refused("HTTP", f"HTTP status {status}{told}")


def no_namenode(why: str) -> Refused:
    """Return the refusal for an answer that is not a NameNode's."""
    return Refused("IOException", f"{why}: is this a NameNode's HTTP address? --webhdfs http://HOST:PORT names another")


def server_of(url: str) -> str:
    """Return the scheme, host and port of a URL: its query may have a token."""
    return "/".join(url.split("/", 3)[:3])


def refused(name: str, message: str) -> Refused:
    """Return the refusal for a Java exception of HDFS, by its simple name."""
    # A NameNode's message contains the stack as well.
    whole = _STACK.split(_TOKEN.sub(r"\1=…", message or name).strip(), maxsplit=1)[0]
    short = _first_line(whole)[:_LONGEST]
    hidden = (found.start() for found in _REASONS.finditer(whole) if found[0] not in short)
    if (at := next(hidden, None)) is None:
        return Refused(name, short)
    return Refused(name, f"{short[: _LONGEST // 2]}…{_first_line(whole[at:])[: _LONGEST // 2]}")


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0]


def reason(error: BaseException) -> str:
    """Return the innermost message, in one line."""
    lines = _TOKEN.sub(r"\1=…", str(error)).rpartition(": ")[2].strip(" ')\"").splitlines()
    return (lines[0] if lines else "")[:200] or type(error).__name__
