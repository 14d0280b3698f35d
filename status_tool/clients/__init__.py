"""An endpoint in, raw answers out: site files, Thrift, ZooKeeper, HDFS over HTTP or RPC, with patience and bounds."""
