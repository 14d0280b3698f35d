"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from status_tool.cli.targets import refuse_overwriting
from status_tool.clients.config import Settings, load_site
from status_tool.clients.kerberos import use
from status_tool.clients.tls import read_trust
from status_tool.errors import UsageError
from status_tool.spark.settings import submitted

ConfDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--conf-dir",
        metavar="DIR",
        help="Folder with hbase-site.xml, hdfs-site.xml, core-site.xml (repeatable; then $HBASE_CONF_DIR, "
        "$HADOOP_CONF_DIR).",
    ),
]
ThriftOption = Annotated[str | None, typer.Option("--thrift", metavar="HOST:PORT", help="HBase Thrift (1) server.")]
WebHdfsOption = Annotated[
    list[str] | None,
    typer.Option("--webhdfs", metavar="URL", help="NameNode, http://HOST:PORT (repeatable)."),
]
ZooKeeperOption = Annotated[
    str | None,
    typer.Option("--zookeeper", metavar="HOST:PORT[,…]/ZNODE", help="ZooKeeper and HBase's znode."),
]

CaCert = Annotated[
    Path | None,
    typer.Option("--cacert", metavar="FILE", help="CA certificates (PEM) to verify servers by."),
]
Cert = Annotated[
    Path | None,
    typer.Option(
        "--cert", metavar="FILE", help="This client's certificate and key (PEM), for servers that ask for one."
    ),
]
Principal = Annotated[
    str | None,
    typer.Option(
        "--principal", metavar="NAME", help="Kerberos: the principal whose ticket, or key in --keytab, to use."
    ),
]
Keytab = Annotated[
    Path | None,
    typer.Option(
        "--keytab", metavar="FILE", help="Kerberos: log in with the key in FILE, and again before tickets expire."
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Show no progress, and only the verdict of a check.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Keep a line for each step.")]
LogFile = Annotated[
    Path | None,
    typer.Option("--log-file", metavar="FILE", help="Also append progress to FILE, with times."),
]


def show_as(*, quiet: bool, verbose: bool, log_file: Path | None) -> None:
    """Set how this process shows progress. Raises `UsageError`, `OutputError`.

    Under `spark-submit` it is `verbose` or not at all: there standard error goes where the results go.
    """
    # Help and a wrong option need not wait for what draws bars.
    from status_tool.report.progress import Shown, open_log, set_shown

    if quiet and verbose:
        raise UsageError("-q shows no progress, -v every step of it: give either")
    set_shown(Shown(quiet or (submitted() and not verbose), verbose, None if log_file is None else open_log(log_file)))


_CLUSTER: dict[str, Any] = {
    "conf_dir": ConfDirs,
    "thrift": ThriftOption,
    "webhdfs": WebHdfsOption,
    "zookeeper": ZooKeeperOption,
    "cacert": CaCert,
    "cert": Cert,
    "principal": Principal,
    "keytab": Keytab,
}
"""The options that name a cluster, and how this client proves who it is; by parameter."""
_ENDPOINTS = ("thrift", "webhdfs", "zookeeper")
Ended = TypeVar("Ended")


def on_cluster(*endpoints: str) -> Callable[[Callable[..., Ended]], Callable[..., Ended]]:
    """Give a command the options that name this cluster, `endpoints` of `_ENDPOINTS` among them.

    The command itself takes their `settings` instead. An output that is an input is refused before anything is read.
    """
    names = [name for name in _CLUSTER if name not in _ENDPOINTS or name in endpoints]

    def decorate(command: Callable[..., Ended]) -> Callable[..., Ended]:
        own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "settings"]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_CLUSTER[name])
            for name in names
        ]

        @wraps(command)
        def taken(**values: Any) -> Ended:
            refuse_overwriting(values)
            settings = settings_of(**{name: values.pop(name) for name in names})
            return command(settings=settings, **values)

        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own] + more
        taken.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return taken

    return decorate


def settings_of(
    conf_dir: list[Path] | None,
    thrift: str | None = None,
    webhdfs: list[str] | None = None,
    zookeeper: str | None = None,
    cacert: Path | None = None,
    cert: Path | None = None,
    principal: str | None = None,
    keytab: Path | None = None,
) -> Settings:
    """Return the settings of the cluster that the options name, and make this process use its tickets."""
    use(principal, keytab)
    trust = read_trust(cacert, cert)
    return Settings(load_site(conf_dir or []), thrift, tuple(webhdfs or ()), zookeeper, trust)
