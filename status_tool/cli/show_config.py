"""`status-tool config`: the options that `status-tool.toml` sets, the endpoints that follow, and where each stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from status_tool.cli.defaults import PARAMETERS, is_given
from status_tool.cli.options import on_cluster, print_answer
from status_tool.cli.run_options import with_options
from status_tool.clients.config import Settings
from status_tool.errors import ConfigurationError

_SITE = "site files"


@on_cluster("thrift", "webhdfs", "zookeeper")
@with_options("as_json")
def config(
    settings: Settings,
    context: typer.Context,
    *,
    as_json: bool,
) -> None:
    """Show each effective setting and where it comes from; nothing is contacted."""
    document = {
        "file": None if context.obj.file is None else str(context.obj.file),
        "profile": context.obj.profile,
        "options": [_option(context, key, name) for key, name in PARAMETERS.items() if _has(context, name)],
        "site_folders": [str(folder) for folder in settings.site.folders],
        "endpoints": _endpoints(context, settings),
    }
    print_answer(document, _lines(context.obj.where, document), as_json=as_json)


def _has(context: typer.Context, name: str) -> bool:
    return name in context.obj.settings or is_given(context, name)


def _option(context: typer.Context, key: str, name: str) -> dict[str, Any]:
    if is_given(context, name):
        value, origin = context.params[name], "command line"
    else:
        value, origin = context.obj.settings[name].value, context.obj.settings[name].where
    return {"option": key, "value": [str(one) for one in value] if isinstance(value, list) else value, "from": origin}


def _endpoints(context: typer.Context, settings: Settings) -> list[dict[str, Any]]:
    """Return the endpoints that options and site files lead to, or the reason why one is unknown."""

    def origin(option: str) -> str:
        return f"--{option}" if _has(context, option) else _SITE

    found: list[tuple[str, Callable[[], object], str]] = [
        ("ZooKeeper", settings.zookeeper, origin("zookeeper")),
        ("Thrift", settings.thrift, origin("thrift")),
        ("WebHDFS", lambda: " ".join(settings.webhdfs()), origin("webhdfs")),
        ("HDFS paths", lambda: " ".join(settings.hdfs_paths) or "/", _SITE),
        ("state table", lambda: settings.state_table, _SITE),
    ]
    return [{"endpoint": name, **_resolved(resolve), "from": where} for name, resolve, where in found]


def _resolved(resolve: Callable[[], object]) -> dict[str, str | None]:
    try:
        return {"value": str(resolve()), "problem": None}
    except ConfigurationError as error:
        return {"value": None, "problem": str(error)}


def _lines(where: str, document: dict[str, Any]) -> list[str]:
    lines = [f"Options file: {where}"]
    for one in document["options"]:
        value = ", ".join(one["value"]) if isinstance(one["value"], list) else one["value"]
        lines.append(f"  {one['option']} = {value}   ({one['from']})")
    lines.append(f"Site files in: {', '.join(document['site_folders']) or 'no folder'}")
    for one in document["endpoints"]:
        known = f"{one['value']}   ({one['from']})" if one["problem"] is None else f"not known: {one['problem']}"
        lines.append(f"  {one['endpoint']}: {known}")
    return lines
