"""Real clusters on loopback, for tests: see README.md."""

from .admin import Admin, Digest, Lag, Peer, Region
from .cluster import Cluster, ClusterSpec
from .errors import AdminError, LabError, LabTimeout, ServerDied
from .kdc import Kdc
from .lab import Lab
from .process import RegionServer, Server
from .secure import Security
from .waiting import wait_until

__all__ = [
    "Admin",
    "AdminError",
    "Cluster",
    "ClusterSpec",
    "Digest",
    "Kdc",
    "Lab",
    "LabError",
    "LabTimeout",
    "Lag",
    "Peer",
    "Region",
    "RegionServer",
    "Security",
    "Server",
    "ServerDied",
    "wait_until",
]
