"""Options of the test suite."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests import spark_classes

spark_classes.use()
# A busy machine is no fault of the code.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
# What this machine's user has configured is not what is tested.
os.environ["STATUS_TOOL_CONFIG"] = "off"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--lab`, see CONTRIBUTING.md."""
    text = "take the pair of clusters that `python -m tests.lab up --tracked` keeps ready"
    parser.addoption("--lab", action="store_true", help=text)


class FromBothEnds(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
    """Modules from the front of the collection for the first two workers, from its back for the others.

    Clusters come first, and mostly wait; what needs none comes last, and computes. So one fills the other's pauses, and
    the memory holds two pairs of clusters for most of the time.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node.gateway.id not in ("gw0", "gw1"):
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FromBothEnds | None:
    """Only where modules go to workers as wholes."""
    return FromBothEnds(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def _shown_as_ever() -> Iterator[None]:
    """What a test asked of progress (-q, --log-file) holds for its process, and not for the tests after it."""
    yield
    from status_tool.report.progress import Shown, set_shown

    set_shown(Shown())
