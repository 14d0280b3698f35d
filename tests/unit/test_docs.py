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
