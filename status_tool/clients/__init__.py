"""An endpoint in, raw answers out: site files, Thrift, ZooKeeper, WebHDFS, with patience and bounds."""
