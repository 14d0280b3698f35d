"""The HTML report in a real Chromium: no error on its console, its layout, search and sort."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from status_tool.report.page import html_report
from status_tool.report.small_pages import point_page
from status_tool.report.summary import write_report
from status_tool.vocabulary.outcome import (
    Beyond,
    Drawing,
    Group,
    Outcome,
    Overview,
    Problem,
    RecoveryPoint,
    TableLine,
    TablePoint,
    Tile,
)
from status_tool.vocabulary.verdicts import Status
from tests.unit.test_report import HBASE, OUTCOME

CHROMIUM = shutil.which("chromium")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"),
)
MAX_BYTES = 5_000_000


def test_chromium_is_there_in_ci() -> None:
    """Where CI runs, nothing of this file may be left out."""
    assert CHROMIUM or not os.environ.get("CI"), "install chromium: these tests must not be skipped in CI"


pytestmark = pytest.mark.filterwarnings("default")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: `apt-get install chromium` runs this test")


def outcome(tables: int, each: int) -> Outcome:
    """So many gaps in each of so many tables."""
    problems = tuple(
        Problem(
            *("gap", "gap: entries after 5 have not arrived", f"ns:t{table}", f"{table:016x}{number:016x}"),
            origin=f"host{number % 7}.example.com,16020,1700000000000",
            from_seq=number,
            to_seq=number + 5,
            written_from_ms=1_699_999_000_000 + number,
            written_to_ms=1_699_999_000_500 + 2 * number,
            lag_ms=(number * 7919) % 100_000 + 1,
            code="gap",
        )
        for table in range(tables)
        for number in range(each)
    )
    groups = tuple(
        Group("gap", "gap", f"ns:t{table}", each, problems[table * each], "copy the table") for table in range(tables)
    )
    lines = tuple(TableLine(f"ns:t{table}", {**dict.fromkeys(Status, 0), Status.GAP: each}) for table in range(tables))
    tiles = tuple(Tile(p.table or "", Status.GAP, 1, 1, p.region) for p in problems[:5_000])
    overview = Overview(groups, (), lines, drawing=Drawing(tiles=tiles, problems=problems))
    return replace(
        OUTCOME, hbase=replace(HBASE, regions={Status.GAP: len(problems)}), problems=problems[:100], overview=overview
    )


def page(path: Path, measured: Outcome) -> str:
    write_report(path, html_report(measured, run_ms=0))
    return path.read_text(encoding="utf-8")


def in_browser(path: Path, profile: Path) -> tuple[str, list[str]]:
    """The page's document after it has run, and what it wrote to the console."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={profile}",
        "--virtual-time-budget=20000",
        "--dump-dom",
        path.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_every_problem_is_on_a_page_of_bounded_size(tmp_path: Path) -> None:
    text = page(tmp_path / "big.html", outcome(50, 1_000))
    assert len(text.encode()) <= MAX_BYTES
    regions = re.findall(r"<td>([0-9a-f]{32})", text)
    assert len(set(regions)) == 50_000, "nothing is left out"


@needs_chromium
def test_the_page_runs_under_its_own_policy(tmp_path: Path) -> None:
    """Its script is the one that its policy names; nothing is refused, nothing fails."""
    page(tmp_path / "page.html", outcome(3, 400))
    document, console = in_browser(tmp_path / "page.html", tmp_path / "profile")
    assert console == []
    assert 'class="has-js"' in document
    assert document.count('aria-sort="none"') > 5


_DRIVER = """
<iframe id="narrow" width="390" height="800" srcdoc="{page}"></iframe>
<pre id="result">nothing</pre>
<script>
window.addEventListener("load", function () {{
  var page = document.getElementById("narrow").contentDocument, measured = {{}};
  measured.width = page.documentElement.scrollWidth;
  var folded = Array.from(page.querySelectorAll("details"));
  measured.folded = folded.filter(function (one) {{ return !one.open; }}).length;
  folded.forEach(function (one) {{ one.open = true; }});
  measured.cut = Array.from(page.querySelectorAll(".scroll, pre")).filter(function (one) {{
    return one.scrollWidth > one.clientWidth;
  }}).length;
  var rows = function () {{ return Array.from(page.querySelectorAll(".group tbody tr")); }};
  var shown = function () {{ return rows().filter(function (r) {{ return !r.hidden && r.offsetParent; }}); }};
  measured.all = rows().length;
  measured.tiles = page.querySelectorAll(".t a").length;
  measured.led = rows().some(function (r) {{ return "#" + r.id === page.querySelector(".t a").getAttribute("href"); }});
  var group = page.querySelector(".group");
  var lags = function () {{
    return Array.from(group.querySelectorAll("tbody tr")).map(function (r) {{ return Number(r.cells[4].dataset.v); }});
  }};
  var head = group.querySelectorAll("th")[4];
  head.click(); measured.up = lags(); head.click(); measured.down = lags();
  var box = page.getElementById("search");
  box.value = "ns:t1 host3";
  box.dispatchEvent(new Event("input"));
  setTimeout(function () {{
    measured.found = page.getElementById("found").textContent;
    measured.shown = shown().length;
    document.getElementById("result").textContent = JSON.stringify(measured);
  }}, 1000);
}});
</script>
"""


def measured_by(template: str, page: str, folder: Path) -> dict[str, Any]:
    """Return what a driver's script measures of a page inside it. The console stays empty."""
    # The driver's own script is not in the page's policy, which a page inside another inherits nothing of.
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    driver = folder / "driver.html"
    driver.write_text(template.format(page=html.escape(bare)), encoding="utf-8")
    document, console = in_browser(driver, folder / "profile")
    assert console == []
    found = re.search(r'<pre id="result">(.*?)</pre>', document, re.DOTALL)
    assert found is not None
    measured: dict[str, Any] = json.loads(html.unescape(found[1]))
    return measured


@needs_chromium
def test_search_sort_and_a_narrow_screen(tmp_path: Path) -> None:
    text = page(tmp_path / "page.html", outcome(3, 400))
    measured = measured_by(_DRIVER, text, tmp_path)
    assert measured["width"] <= 390, "the page itself does not scroll sideways"
    assert measured["folded"] > 3
    assert measured["cut"] == 0, "no table and no command is cut off"
    assert (measured["all"], measured["tiles"], measured["led"]) == (1200, 1200, True)
    assert measured["up"] == sorted(measured["up"])
    assert measured["down"] == sorted(measured["down"], reverse=True)
    assert len(measured["up"]) == 400
    assert measured["found"] == "57 found"
    assert measured["shown"] == 57


_MEASURE = """
<iframe id="narrow" width="390" height="800" srcdoc="{page}"></iframe><pre id="result"></pre>
<script>
window.addEventListener("load", function () {{
  var page = document.getElementById("narrow").contentDocument;
  var bars = Array.from(page.querySelectorAll("svg rect")).map(function (bar) {{
    return [bar.getAttribute("class"), bar.getBoundingClientRect().width];
  }});
  document.getElementById("result").textContent = JSON.stringify({{
    width: page.documentElement.scrollWidth, bars: bars, marks: page.querySelectorAll("path.mark").length,
    names: Array.from(page.querySelectorAll("td:first-child")).map(function (cell) {{ return cell.textContent; }})
  }});
}});
</script>
"""


@needs_chromium
def test_the_page_of_a_recovery_point(tmp_path: Path) -> None:
    """Its bars are as long as the times say, on a narrow screen; a table's name is text, whatever it is."""
    tables = {
        "orders": TablePoint(100_000, None, Beyond(100_000, 0)),
        "<img src=x onerror=alert(1)>": TablePoint(60_000, "behind: x", Beyond(80_000, 12)),
        "new": TablePoint(None, "missing: y", Beyond(90_000, 3)),
    }
    answer = RecoveryPoint("s", "m", 110_000, 60_000, 300, "behind: x", "exact", tables, 100_000, 30_000, 5, 3)
    text = "".join(point_page(answer, ["All before <b>."], "incomplete"))
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    _, console = in_browser(tmp_path / "page.html", tmp_path / "profile")
    assert console == []
    measured = measured_by(_MEASURE, text, tmp_path)
    assert measured["width"] <= 390, "the page itself does not scroll sideways"
    assert measured["names"] == [*tables]
    assert measured["marks"] == 3
    kinds, lengths = zip(*measured["bars"], strict=True)
    assert kinds == ("proven", "proven", "beyond", "beyond")
    whole, proven, beyond, _ = lengths
    assert round((whole - proven) / beyond, 1) == 2.0, "40 s are twice 20 s"


if __name__ == "__main__":
    page(Path(sys.argv[1]), outcome(50, 1_000))
