"""Commands for HBase's shell, read as Ruby would read them, and done through the lab's client: the lab has no JRuby.

Only what this tool prints: a command and its arguments, which are strings, lists, and hashes; a hash that comes last
needs no braces, and a constant stands for its own name.
"""

from __future__ import annotations

import re
from typing import Any

from tests.lab.admin import Admin

_TOKEN = re.compile(r"\s*('(?:\\.|[^'\\])*'|=>|[\[\]{},]|[A-Za-z_]\w*)")


class NoCommand(ValueError):
    """The shell would not understand it."""


def parsed(line: str) -> tuple[str, list[Any]]:
    """The command's name and its arguments."""
    tokens, at = list[str](), 0
    while line[at:].strip():
        found = _TOKEN.match(line, at)
        if found is None:
            raise NoCommand(line[at:])
        tokens.append(found[1])
        at = found.end()
    rest = _Tokens(tokens[1:])
    arguments = rest.values("")
    return tokens[0], arguments


def do(admin: Admin, line: str) -> None:
    """Do what a command says."""
    name, arguments = parsed(line)
    options: dict[str, Any] = arguments.pop() if isinstance(arguments[-1], dict) else {}
    (peer,) = arguments
    if name in ("enable_peer", "disable_peer") and not options:
        (admin.enable_peer if name == "enable_peer" else admin.disable_peer)(peer)
    elif name == "add_peer" and options.keys() <= {"CLUSTER_KEY", "STATE", "TABLE_CFS", "NAMESPACES"}:
        enabled = {"ENABLED": True, "DISABLED": False}[options.get("STATE", "ENABLED")]
        tables, namespaces = options.get("TABLE_CFS"), options.get("NAMESPACES")
        admin.add_peer(peer, options["CLUSTER_KEY"], table_cfs=tables, namespaces=namespaces, enabled=enabled)
    else:
        raise NoCommand(line)


class _Tokens:
    def __init__(self, tokens: list[str]) -> None:
        self._left = tokens

    def values(self, end: str) -> list[Any]:
        """Up to a closing bracket, or to the end; pairs without braces become one hash."""
        found, pairs = list[Any](), dict[Any, Any]()
        while self._left and self._left[0] != end:
            value = self._value()
            if self._left[:1] == ["=>"]:
                del self._left[0]
                pairs[value] = self._value()
            elif pairs:
                raise NoCommand("a value after a hash")
            else:
                found.append(value)
            if self._left[:1] not in ([","], [end], []):
                raise NoCommand(self._left[0])
            if self._left[:1] == [","]:
                del self._left[0]
        if end and not self._left:
            raise NoCommand(f"{end} is missing")
        del self._left[:1]
        return [*found, pairs] if pairs else found

    def _value(self) -> Any:
        token = self._left.pop(0) if self._left else ""
        if token == "[":
            return self.values("]")
        if token == "{":
            (found,) = self.values("}") or [{}]
            return found
        if token.startswith("'"):
            return re.sub(r"\\(['\\])", r"\1", token[1:-1])
        if token.isupper() or re.fullmatch(r"[A-Z][A-Z_]*", token):
            return token
        if token in ("true", "false"):
            return token == "true"
        raise NoCommand(token)
