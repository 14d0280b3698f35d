"""status-tool: has everything that was written on the master really arrived on the slave?"""

__version__ = "0.1.0"
