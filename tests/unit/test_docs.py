"""The documents: what a program can check of them."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from bench.results import read_results
from bench.table import RESULTS
from status_tool.cli.reference import commands_markdown
from tests.wrap import wrap

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
LONGEST = 120
"""Characters of a line of prose; tables and code may be wider."""


def documents() -> list[Path]:
    """Every Markdown file under version control, or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.split()
    # A copy without .git has at least these.
    named = [REPOSITORY / name for name in listed] or [*REPOSITORY.glob("*.md"), *DOCS.glob("*.md")]
    return [path for path in named if path.is_file()]


def prose(text: str) -> list[str]:
    """Its lines without tables and code."""
    plain = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    return [line for line in plain.splitlines() if not line.lstrip().startswith("|")]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_lines_are_short_and_links_lead_somewhere(path: Path) -> None:
    """Prose at most 120 characters a line; relative links name files, and headings in them, that are there."""
    lines = prose(path.read_text())
    assert [line for line in lines if len(line) > LONGEST] == []
    for target, _, heading in re.findall(r"\]\(([^)#:]*)(#([^)]+))?\)", "\n".join(lines)):
        other = (path.parent / target) if target else path
        assert other.exists(), target
        if heading:
            assert heading in anchors(other.read_text()), f"{target}#{heading}"


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_wrapping_changes_white_space_only_and_none_the_second_time(path: Path) -> None:
    """`python -m tests.wrap` on what is there."""
    text = path.read_text()
    wrapped = wrap(text)
    assert wrapped.split() == text.split()
    assert wrap(wrapped) == wrapped
    assert [line for line in prose(wrapped) if len(line) > LONGEST] == []


def anchors(text: str) -> set[str]:
    """What a heading is linked by."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_is_short() -> None:
    """What an operator needs first; all else is in docs/."""
    assert len((REPOSITORY / "README.md").read_text().splitlines()) < 150


def test_the_command_reference_is_the_commands() -> None:
    """docs/commands.md is printed from the code."""
    assert (DOCS / "commands.md").read_text() == commands_markdown(), "python -m status_tool.cli.reference docs"


def test_every_document_is_reached_from_the_readme() -> None:
    """What was moved out of the README can be found from it."""
    reached, ahead = set(), [REPOSITORY / "README.md"]
    while ahead:
        path = ahead.pop().resolve()
        if path not in reached and path.suffix == ".md" and path.exists():
            reached.add(path)
            ahead += [path.parent / link for link in re.findall(r"\]\(([^)#:]+)", path.read_text())]
    assert {path.resolve() for path in DOCS.glob("*.md")} <= reached


def test_decisions_are_few_and_short() -> None:
    """At most 40, each with context and consequence, in under 120 words."""
    rows = re.findall(r"^\| (\*\*.+) \|$", (DOCS / "decisions.md").read_text(), re.M)
    assert 30 <= len(rows) <= 40
    for row in rows:
        assert len(row.split(" | ")) == 3, row
        assert len(row.split()) < 120, row


def test_nothing_cites_a_decision_by_its_number() -> None:
    """Numbers and places change; a comment says its reason itself."""
    folders = ("status_tool", "tests", "bench", "coprocessor_stubs/src", "docs")
    files = [path for folder in folders for path in (REPOSITORY / folder).rglob("*")]
    cited = re.compile(r"\bdecisions? \d|decisions\.md, ")
    texts = [path for path in files if path.suffix in (".py", ".java", ".md", ".xml") and path != Path(__file__)]
    assert len(texts) > 300
    assert [path for path in texts if cited.search(path.read_text())] == []


def test_tests_that_are_named_exist() -> None:
    """`file.py` (a unit test where no folder is named), `file.py::test`, `::test` of the file before, Java's alike."""
    tests = REPOSITORY / "tests"
    java = {path.stem: path.read_text() for path in (REPOSITORY / "coprocessor_stubs" / "src" / "test").rglob("*.java")}
    everything = "".join(path.read_text() for path in tests.rglob("test_*.py"))
    found = Counter[str]()
    for page in DOCS.glob("*.md"):
        source = everything
        for code in re.findall(r"`([^`]+)`", page.read_text()):
            file, _, name = code.partition("::")
            if file.endswith(".py") and "test" in file:
                places = (REPOSITORY / file, tests / file, tests / "unit" / file, *tests.rglob(file))
                path = next((place for place in places if place.exists()), None)
                assert path is not None, (page, code)
                source = path.read_text()
            elif code.startswith("test_"):
                name, source = code, everything
            if name.startswith("test_"):
                assert f"def {name}(".replace("…(", "") in source, (page, code)
                found[page.name] += 1
            if match := re.fullmatch(r"(\w+Test)(?:\.(\w+))?(?:\.java)?", code):
                assert match[1] in java, (page, code)
                assert match[2] in (None, "java") or f" {match[2]}(" in java[match[1]], (page, code)
                found[page.name] += 1
    assert found["correctness.md"] > 100
    assert min(found["closed-world.md"], found["ways-out.md"]) > 30


def test_figures_of_the_readme_are_those_of_the_pages_that_it_names() -> None:
    """A paragraph that links to the measurements or to the campaign has no number of its own."""
    readme = (REPOSITORY / "README.md").read_text()
    ratio = re.search(r"DistCp takes ([\d.]+) times", " ".join(readme.split()))
    assert ratio
    results = {(one.against, one.size, one.what): one for one in read_results(RESULTS)}
    distcp = results["distcp", 20_000, "run -m and run -i, native"]
    assert ratio[1] == f"{1 / distcp.ratio:.1f}"
    checked = 0
    for page in ("performance.md", "campaign.md"):
        (paragraph,) = (one for one in readme.split("\n\n") if f"](docs/{page})" in one and one[0] != "|")
        shown = (DOCS / page).read_text()
        for number in re.findall(r"\d[\d,.]*\d", paragraph.partition(f"](docs/{page})")[0]):
            assert number in (*re.findall(r"\d[\d,.]*\d", shown), ratio[1]), (page, number)
            checked += 1
    assert checked >= 9


def test_the_closed_world_lists_every_row_of_the_survey_once() -> None:
    """The survey's sections had so many rows; rows that are the same for a reader share a line."""
    text = (DOCS / "closed-world.md").read_text()
    cells = re.findall(r"^\| ((?:\d\.\d+ ?)+)\|", text, re.M)
    rows = {1: 36, 2: 21, 3: 15, 4: 19, 5: 15}
    survey = {f"{section}.{number}" for section, count in rows.items() for number in range(1, count + 1)}
    assert sorted(number for cell in cells for number in cell.split()) == sorted(survey)
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| #")]
    assert all(cell.strip() for line in lines for cell in line.strip("|").split("|"))
