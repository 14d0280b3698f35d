"""`python -m status_tool`."""

from status_tool.cli.entry import entry

if __name__ == "__main__":
    entry()
