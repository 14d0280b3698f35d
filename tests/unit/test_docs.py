"""The documents: what can be checked of them by a program."""

from __future__ import annotations

import re

from tests.pair import REPOSITORY

DOCS = REPOSITORY / "docs"


def test_decisions_are_listed_by_topic() -> None:
    """Every decision is there once, under the topic that the list at the top names for it."""
    text = (DOCS / "decisions.md").read_text()
    topics = re.split(r"^## ", text, flags=re.M)
    listed = {title: numbers for title, numbers in re.findall(r"^- \[(.+?)\]\(#.+?\): ([\d,\s]+)$", topics[0], re.M)}
    stands = {topic.split("\n")[0]: re.findall(r"^\*\*(\d+)\. ", topic, re.M) for topic in topics[1:]}
    assert {title: re.findall(r"\d+", numbers) for title, numbers in listed.items()} == stands
    numbers = [number for found in stands.values() for number in found]
    assert len(numbers) == len(set(numbers))


def test_the_closed_world_lists_every_row_of_the_survey_once() -> None:
    """The survey's sections had so many rows; rows that are the same for a reader share a line."""
    text = (DOCS / "closed-world.md").read_text()
    cells = re.findall(r"^\| ((?:\d\.\d+ ?)+)\|", text, re.M)
    rows = {1: 36, 2: 21, 3: 15, 4: 19, 5: 15}
    survey = {f"{section}.{number}" for section, count in rows.items() for number in range(1, count + 1)}
    assert sorted(number for cell in cells for number in cell.split()) == sorted(survey)
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| #")]
    assert all(cell.strip() for line in lines for cell in line.strip("|").split("|"))
