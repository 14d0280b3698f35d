"""The documents: what a program can check of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

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
    assert (DOCS / "commands.md").read_text() == commands_markdown(), (
        "python -m status_tool.cli.reference > docs/commands.md"
    )


def test_every_document_is_reached_from_the_readme() -> None:
    """What was moved out of the README can be found from it."""
    reached, ahead = set(), [REPOSITORY / "README.md"]
    while ahead:
        path = ahead.pop().resolve()
        if path not in reached and path.suffix == ".md" and path.exists():
            reached.add(path)
            ahead += [path.parent / link for link in re.findall(r"\]\(([^)#:]+)", path.read_text())]
    assert {path.resolve() for path in DOCS.glob("*.md")} <= reached


def test_tests_that_are_named_exist() -> None:
    """As paths in code; what follows `::` is looked for in their text."""
    for path in DOCS.glob("*.md"):
        for file, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?", path.read_text()):
            found = REPOSITORY / file
            assert found.exists(), (path.name, file)
            assert name in found.read_text(), (path.name, file, name)


def test_decisions_are_listed_by_topic() -> None:
    """Every decision is there once, under the topic that the list at the top names for it."""
    text = (DOCS / "decisions.md").read_text()
    topics = re.split(r"^## ", text, flags=re.M)
    listed = {title: numbers for title, numbers in re.findall(r"^- \[(.+?)\]\(#.+?\): ([\d,\s]+)$", topics[0], re.M)}
    stands = {topic.split("\n")[0]: re.findall(r"^\*\*(\d+)\. ", topic, re.M) for topic in topics[1:]}
    assert {title: re.findall(r"\d+", numbers) for title, numbers in listed.items()} == stands
    numbers = [number for found in stands.values() for number in found]
    assert len(numbers) == len(set(numbers))
    # Written in the order of dates at the end of the file, as they once were, they would be found by nobody.
    assert re.findall(r"^\d+\. \*\*", text, re.M) == []


def test_the_closed_world_lists_every_row_of_the_survey_once() -> None:
    """The survey's sections had so many rows; rows that are the same for a reader share a line."""
    text = (DOCS / "closed-world.md").read_text()
    cells = re.findall(r"^\| ((?:\d\.\d+ ?)+)\|", text, re.M)
    rows = {1: 36, 2: 21, 3: 15, 4: 19, 5: 15}
    survey = {f"{section}.{number}" for section, count in rows.items() for number in range(1, count + 1)}
    assert sorted(number for cell in cells for number in cell.split()) == sorted(survey)
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| #")]
    assert all(cell.strip() for line in lines for cell in line.strip("|").split("|"))
