"""`python -m status_tool`."""

from status_tool.cli.main import entry

if __name__ == "__main__":
    entry()
