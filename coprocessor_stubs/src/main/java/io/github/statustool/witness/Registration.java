package io.github.statustool.witness;

import java.io.Closeable;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Abortable;
import org.apache.hadoop.hbase.ClusterId;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos.RegionServerInfo;
import org.apache.hadoop.hbase.zookeeper.ZKClusterId;
import org.apache.hadoop.hbase.zookeeper.ZKUtil;
import org.apache.hadoop.hbase.zookeeper.ZKWatcher;
import org.apache.hadoop.hbase.zookeeper.ZNodePaths;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;

/**
 * A witness in ZooKeeper, where a source looks for its peer: the cluster's id and, as long as the session lasts, a
 * region server. The folder of each witness that has ever been here stays named below {@code stores}, as a source may
 * have sent any part to any of them.
 */
final class Registration implements Closeable {
  static final String STORES = "stores";

  private final ZKWatcher zooKeeper;
  private final String address;
  private final String znode;
  private final String storeZnode;
  /** How much of the store is on disk; nobody waits for more to be recorded. */
  private final AtomicReference<StorePosition> kept = new AtomicReference<>(StorePosition.START);
  /** How much of it the znode says. */
  private StorePosition recorded;

  /**
   * Registers.
   *
   * @param lost is called once the session is gone, with it the registration
   * @throws IOException if ZooKeeper cannot be reached, or if the znode is of a cluster or of another folder's witness
   */
  Registration(Configuration configuration, ServerName server, ArrivalStore store, Runnable lost)
      throws IOException {
    zooKeeper = new ZKWatcher(configuration, "witness", new OnLoss(lost));
    ZNodePaths paths = zooKeeper.getZNodePaths();
    address = server.getAddress().toString();
    znode = ZNodePaths.joinZNode(paths.rsZNode, server.toString());
    String stores = ZNodePaths.joinZNode(paths.baseZNode, STORES);
    storeZnode = ZNodePaths.joinZNode(stores, store.id().toString());
    try {
      refuseCluster(paths);
      ZKUtil.createWithParents(zooKeeper, paths.rsZNode);
      setClusterId(paths, store);
      ZKUtil.createWithParents(zooKeeper, stores);
      recorded = recorded(store);
      store.begin(recorded);
      ZKUtil.createSetData(zooKeeper, storeZnode, recorded.toZnode(address));
      RegionServerInfo info = RegionServerInfo.newBuilder().setInfoPort(-1).build();
      ZKUtil.createEphemeralNodeAndWatch(zooKeeper, znode, ProtobufUtil.prependPBMagic(info.toByteArray()));
    } catch (InterruptedException error) {
      zooKeeper.close();
      throw new InterruptedIOException("interrupted");
    } catch (KeeperException error) {
      zooKeeper.close();
      throw new IOException("cannot register at ZooKeeper " + zooKeeper.getQuorum() + ": " + error.getMessage(), error);
    } catch (IOException error) {
      zooKeeper.close();
      throw error;
    }
  }

  /** Returns how much of the store was acknowledged. Only ZooKeeper knows if the folder was restored from a backup. */
  private StorePosition recorded(ArrivalStore store) throws KeeperException, InterruptedException, IOException {
    byte[] data = ZKUtil.getData(zooKeeper, storeZnode);
    StorePosition known = data == null ? StorePosition.START : StorePosition.ofZnode(data);
    if (known == null || (data == null && store.reach().compareTo(StorePosition.START) > 0)) {
      throw new IOException(
          "ZooKeeper does not know how much of the folder was acknowledged (" + storeZnode
              + "): begin anew with another folder, znode and peer");
    }
    return known;
  }

  /** Returns once ZooKeeper has that so much of the store is to be acknowledged. One write serves all that wait. */
  void acknowledge(StorePosition position) throws IOException {
    kept.accumulateAndGet(position, StorePosition::later);
    synchronized (this) {
      if (recorded.compareTo(position) >= 0) {
        return;
      }
      StorePosition all = kept.get();
      try {
        ZKUtil.setData(zooKeeper, storeZnode, all.toZnode(address));
      } catch (KeeperException error) {
        throw new IOException("cannot record at ZooKeeper what is acknowledged: " + error.getMessage(), error);
      }
      recorded = all;
    }
  }

  private void refuseCluster(ZNodePaths paths) throws KeeperException, IOException {
    for (String own : new String[] {paths.masterAddressZNode, paths.backupMasterAddressesZNode}) {
      if (ZKUtil.checkExists(zooKeeper, own) != -1) {
        throw new IOException(paths.baseZNode + " is the znode of an HBase cluster: give the witness one of its own");
      }
    }
  }

  /** Sets the id of the cluster. The first witness determines it. */
  private void setClusterId(ZNodePaths paths, ArrivalStore store) throws KeeperException, IOException {
    UUID ours = store.clusterId();
    ClusterId id = new ClusterId((ours == null ? UUID.randomUUID() : ours).toString());
    ZKUtil.createNodeIfNotExistsNoWatch(zooKeeper, paths.clusterIdZNode, id.toByteArray(), CreateMode.PERSISTENT);
    UUID theirs = ZKClusterId.getUUIDForCluster(zooKeeper);
    if (ours == null) {
      store.clusterId(theirs);
    } else if (!ours.equals(theirs)) {
      throw new IOException(
          paths.baseZNode + " has the id " + theirs + ", and the folder was filled as " + ours
              + ": give the witness another znode, or another folder");
    }
  }

  /** Ends the registration at once, instead of after the session's time-out. */
  @Override
  public void close() {
    try {
      ZKUtil.deleteNodeFailSilent(zooKeeper, znode);
    } catch (KeeperException error) {
      // It ends with the session.
    }
    zooKeeper.close();
  }

  private static final class OnLoss implements Abortable {
    private final Runnable lost;

    OnLoss(Runnable lost) {
      this.lost = lost;
    }

    @Override
    public void abort(String why, Throwable error) {
      lost.run();
    }

    @Override
    public boolean isAborted() {
      return false;
    }
  }
}
