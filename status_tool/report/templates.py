"""Templates of the HTML pages: no network, and every value from outside sanitised and escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from status_tool.printable import counted, iso, safe
from status_tool.report.text import proof_words, shell_lines


def page_parts(
    template: str, content: dict[str, Any], title: str = "Replication status", script: str = ""
) -> Iterator[str]:
    """Yield a page part by part. The page's policy lets `script` run by its hash, and no other."""
    from markupsafe import Markup

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    whole = {**content, "title": title, "script": Markup(script), "script_hash": f"sha256-{digest}"}
    # `render` would hold the whole page as one text.
    yield from _environment().get_template(template).generate(whole)


@cache
def _environment() -> Any:
    # Imported here: most runs write no page.
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    # A name that the content lacks is an error (`StrictUndefined`): by default it would be blank on the page.
    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        loader=FunctionLoader(asset),
    )
    environment.filters |= {"counted": counted, "iso": iso, "short": safe}
    environment.filters |= {"in_lines": _in_lines, "proof_words": proof_words}
    environment.globals["css"] = Markup(asset("report.css"))
    return environment


@cache
def asset(name: str) -> str:
    """Return the text of a file of the pages."""
    return (files("status_tool.report") / "assets" / name).read_text(encoding="utf-8")


def _finalized(value: Any) -> Any:
    """Sanitise and escape names from outside. Our own markup passes."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else safe(value)


def _in_lines(command: str) -> Any:
    """Return a command in lines of a terminal's width, sanitised and escaped.

    Narrow screens break it only between words.
    """
    from markupsafe import Markup

    word = Markup("<span>{}</span>")
    lines = (Markup(" ").join(word.format(part) for part in line.split(" ")) for line in shell_lines(command))
    return Markup("\n").join(lines)
