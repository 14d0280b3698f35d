"""Errors of the laboratory.

LabError
├── ServerDied     a server ended before it was usable, with the end of its log
├── LabTimeout     something did not happen in time
└── AdminError     HBase or HDFS refused a command
"""


class LabError(Exception):
    """The laboratory could not do what a test wanted."""


class ServerDied(LabError):
    """A server process ended although nobody ended it."""


class LabTimeout(LabError):
    """What was waited for did not happen in time."""


class AdminError(LabError):
    """A command failed in the admin process: the Java exception's class and message."""

    def __init__(self, command: str, kind: str, message: str) -> None:
        super().__init__(f"{command}: {kind}: {message}")
        self.command = command
        self.kind = kind
        self.message = message
