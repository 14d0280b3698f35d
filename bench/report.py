"""When a browser first paints the report with 50,000 problems: ratios of times within one run, in Chromium.

    python -m bench.report [ROUNDS]

The pages alternate, so that whatever else the machine does meets all of them. `report`: 50,000 problems in 50 tables;
`bare`: a page without style and script whose one table has the same rows; `empty`: the report of a run that found
nothing wrong. Headless, over the DevTools protocol, each time in a browser of its own: what its user would wait for
from the navigation to the first contentful paint, and until the page has loaded.
"""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any

from bench.results import Ratio, record
from status_tool.report.page import HtmlReporter
from status_tool.report.reporter import write_report
from status_tool.vocabulary.outcome import Outcome
from tests.unit.test_report_browser import FLAGS, outcome

ROUNDS = 5
TABLES, EACH = 50, 1_000
TO_BROWSER, FROM_BROWSER = 3, 4
"""The file descriptors by which Chromium speaks its protocol (`--remote-debugging-pipe`)."""
_MOMENTS = """new Promise(done => requestAnimationFrame(() => setTimeout(() => {
  const painted = performance.getEntriesByName("first-contentful-paint")[0];
  const loaded = performance.getEntriesByType("navigation")[0];
  done({paint: painted ? painted.startTime : null, load: loaded.loadEventEnd});
}, 100)))"""


def main() -> int:
    """Run all rounds; returns 0, or 2 where there is no browser."""
    browser = shutil.which("chromium")
    if browser is None:
        print("bench.report needs Chromium", file=sys.stderr)
        return 2
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        pages = _pages(Path(name))
        times: dict[str, list[Mapping[str, float]]] = {kind: [] for kind in pages}
        for number in range(rounds):
            for kind, page in pages.items():
                times[kind].append(_moments(browser, page, Path(name, f"profile-{number}-{kind}")))
        sizes = {kind: page.stat().st_size for kind, page in pages.items()}
    print(", ".join(f"{kind}: {size / 1e6:.2f} MB" for kind, size in sizes.items()))
    _compare("first paint of the report", "bare table of its rows", times["report"], times["bare"], "paint")
    _compare("first paint of the report", "report without a problem", times["report"], times["empty"], "paint")
    _compare("loading the report", "bare table of its rows", times["report"], times["bare"], "load")
    return 0


def _compare(
    what: str, against: str, ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]], moment: str
) -> None:
    mine, other = (tuple(one[moment] / 1000 for one in side) for side in (ours, theirs))
    record(Ratio("report", what, against, TABLES * EACH, "problems", "s", mine, other, limit="the browser's layout"))


def _pages(folder: Path) -> dict[str, Path]:
    pages = {kind: folder / f"{kind}.html" for kind in ("report", "bare", "empty")}
    large = outcome(TABLES, EACH)
    write_report(HtmlReporter(run_ms=0), large, pages["report"])
    write_report(HtmlReporter(run_ms=0), outcome(0, 0), pages["empty"])
    pages["bare"].write_text("".join(_bare(large)), encoding="utf-8")
    return pages


def _bare(large: Outcome) -> Iterator[str]:
    assert large.overview.drawing is not None
    yield "<!DOCTYPE html><title>bare</title><table>"
    for problem in large.overview.drawing.problems:
        cells = (problem.table, problem.region, problem.origin, problem.from_seq, problem.to_seq, problem.lag_ms)
        yield f"<tr>{''.join(f'<td>{html.escape(str(cell))}' for cell in cells)}"
    yield "</table>"


def _moments(browser: str, page: Path, profile: Path) -> Mapping[str, float]:
    """Milliseconds from the navigation to the first contentful paint, and to the end of loading."""
    with _session(browser, profile) as ask:
        target = ask("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        session = ask("Target.attachToTarget", {"targetId": target, "flatten": True}, None)["sessionId"]
        ask("Page.enable", {}, session)
        ask("Page.navigate", {"url": page.as_uri()}, session, until="Page.loadEventFired")
        asked = {"expression": _MOMENTS, "awaitPromise": True, "returnByValue": True}
        found: dict[str, float] = ask("Runtime.evaluate", asked, session)["result"]["value"]
    if found["paint"] is None:
        raise RuntimeError(f"{page}: nothing was painted")
    return found


@contextmanager
def _session(browser: str, profile: Path) -> Iterator[Any]:
    """A browser, and a function that asks it: the answer to a command, once the event `until` has come as well."""
    into, from_us = os.pipe()
    to_us, out = os.pipe()

    def ends() -> None:
        # First away from 3 and 4, which either may be itself.
        read, write = os.dup(into), os.dup(out)
        os.dup2(read, TO_BROWSER)
        os.dup2(write, FROM_BROWSER)

    command = [browser, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
    with (
        open(from_us, "wb", buffering=0) as sent,
        open(to_us, "rb") as received,
        subprocess.Popen(command, preexec_fn=ends, close_fds=False, stderr=subprocess.DEVNULL) as process,
    ):
        os.close(into)
        os.close(out)
        numbers = count(1)

        def ask(method: str, params: Mapping[str, Any], session: str | None, until: str = "") -> Any:
            number = next(numbers)
            message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
            sent.write(json.dumps(message).encode() + b"\0")
            return _answer(received, number, until)

        try:
            yield ask
        finally:
            process.kill()


def _answer(received: IO[bytes], number: int, until: str) -> Any:
    answer, is_there = None, not until
    while answer is None or not is_there:
        message = _message(received)
        is_there = is_there or message.get("method") == until
        if message.get("id") == number:
            if "error" in message:
                raise RuntimeError(message["error"]["message"])
            answer = message["result"]
    return answer


def _message(received: IO[bytes]) -> dict[str, Any]:
    """The next one; they end with a zero byte."""
    text = bytearray()
    while (byte := received.read(1)) != b"\0":
        if not byte:
            raise RuntimeError("the browser has ended")
        text += byte
    message: dict[str, Any] = json.loads(text)
    return message


if __name__ == "__main__":
    sys.exit(main())
