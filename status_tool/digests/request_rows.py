"""The rows and columns of the request table of row digests by name, as the trackers' `DigestTable` has them.

Its column family is that of the state table.
"""

from __future__ import annotations

from typing import Final


class RequestRow:
    """A request. Written by the tool."""

    TYPE: Final = "q"
    REQUEST: Final = b"d"
    HEARTBEAT: Final = b"h"
    WITHDRAWN: Final = b"x"


class PageRow:
    """A page of ranges for one region server. Written by the tool."""

    TYPE: Final = "p"
    RANGES: Final = b"r"


class ProgressRow:
    """Sign that a region server works on a request; only its timestamp counts."""

    TYPE: Final = "s"
    VERSION: Final = b"v"


class AnswerRow:
    """Answers of a region server."""

    TYPE: Final = "a"
    ANSWERS: Final = b"a"
