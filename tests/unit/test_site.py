"""The documents as a site: it builds strictly, and no page fetches anything from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.pair import REPOSITORY
from tests.site_hook import indented

pytestmark = pytest.mark.slow

FETCHED = {
    **{"script": ("src",), "iframe": ("src",), "embed": ("src",), "audio": ("src",), "video": ("src", "poster")},
    **{"img": ("src", "srcset"), "source": ("src", "srcset"), "object": ("data",)},
    **{"link": ("href",), "use": ("href", "xlink:href"), "image": ("href", "xlink:href")},
}
"""What a browser loads by itself, unlike the target of `<a>`."""


class Fetched(HTMLParser):
    """Everything that a browser would load for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.headings: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.targets += [found for name in FETCHED.get(tag, ()) if (found := values.get(name))]
        self._in_style = tag == "style"
        if "style" in values and "url(" in (values["style"] or ""):
            self.targets.append(values["style"] or "")
        # Mermaid's own class: the theme's script would fetch what draws it.
        if "mermaid" in (values.get("class") or "").split():
            self.targets.append("https://mermaid")
        if tag in ("h1", "h2", "h3") and values.get("id"):
            self.headings.append(str(values["id"]))

    def handle_endtag(self, tag: str) -> None:
        self._in_style &= tag != "style"

    def handle_data(self, data: str) -> None:
        if self._in_style and ("@import" in data or "url(" in data):
            self.targets.append(data)


def is_remote(target: str) -> bool:
    return target.startswith("//") or "http://" in target or "https://" in target


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: a page that is in no menu, a link or an anchor that leads nowhere ends it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_document_is_a_page(site: Path) -> None:
    """Those of docs/ and the README, which is the first page."""
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    named = {path.relative_to(REPOSITORY / "docs").with_suffix(".html") for path in (REPOSITORY / "docs").rglob("*.md")}
    wanted = {str(path.with_name("index.html") if path.stem == "README" else path) for path in named}
    assert wanted | {"index.html", "trackers.html", "contributing.html", "changes.html"} <= pages
    assert "--max-age SECONDS" in (site / "options-in-full.html").read_text()
    assert "Has everything that was written on the master" in (site / "index.html").read_text()


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    """Scripts, styles, fonts, images: all of them are in the site. Nor do its style sheets import any."""
    for page in site.rglob("*.html"):
        parser = Fetched()
        parser.feed(page.read_text())
        assert parser.targets, page
        assert [target for target in parser.targets if is_remote(target)] == [], page
        local = [target.split("#")[0].split("?")[0] for target in parser.targets if not target.startswith("data:")]
        # The page for what is not found is served from anywhere, so its paths begin at the root.
        places = [(site if one[0] == "/" else page.parent) / one.lstrip("/") for one in local if one]
        missing = [place for place in places if not place.exists()]
        assert missing == [], page
    for style in site.rglob("*.css"):
        text = style.read_text()
        urls = [part.strip("'\" ") for part in re.findall(r"url\(([^)]*)", text)]
        assert [url for url in urls if is_remote(url) and not url.startswith("data:")] == [], style
        assert "@import" not in text, style


def test_numbered_lists_go_on_after_code(site: Path) -> None:
    """Items with code below them stay one list, as GitHub shows them."""
    planned = (site / "failover.html").read_text().split('id="planned"')[1].split("<h2")[0]
    assert planned.count("<ol>") == 1
    assert planned.split("<ol>")[1].count("<li>") == 4


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("1. a\n\n   ```\n   x\n   ```\n2. b", "1. a\n\n    ```\n    x\n    ```\n\n2. b"),
        ("- a\n  b\n  - c\n    d\n- e", "- a\n    b\n    - c\n        d\n- e"),
        ("a:\n- b\n\nc", "a:\n\n- b\n\nc"),
        ("```\n- a\n  - b\n```", "```\n- a\n  - b\n```"),
    ],
)
def test_lists_are_indented_as_pythons_markdown_wants(markdown: str, expected: str) -> None:
    assert "\n".join(indented(markdown.splitlines())) == expected
