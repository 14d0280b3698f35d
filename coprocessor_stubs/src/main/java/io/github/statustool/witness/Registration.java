package io.github.statustool.witness;

import java.io.Closeable;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.Arrays;
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
import org.apache.zookeeper.data.Stat;

/**
 * A witness in ZooKeeper, where a source looks for its peer: the cluster's id and, as long as the session lasts, a
 * region server. The folder of each witness that has ever been here stays named below {@code stores}, as a source may
 * have sent any part to any of them. Only the process that wrote the folder's znode last may write it again: of two
 * with copies of one folder, each would vouch for what the other one has.
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
  /** Version of the znode that this process wrote or read last. */
  private int version;
  /** What it has tried to write since, the answer being lost; null: nothing. */
  private byte[] uncertain;

  /** Another process has begun to write the znode. */
  static final class TakenOverException extends IOException {
    private static final long serialVersionUID = 1;

    TakenOverException(String message) {
      super(message);
    }
  }

  /**
   * Registers.
   *
   * @param before this process's registration whose session is gone; null: it has had none
   * @param lost is called once the session is gone, with it the registration
   * @throws IOException if ZooKeeper cannot be reached, if the znode is of a cluster or of another folder's witness, or
   *     if another process has registered the folder since {@code before}
   */
  Registration(
      Configuration configuration, ServerName server, ArrivalStore store, Registration before, Runnable lost)
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
      recorded = recorded(store, before);
      store.begin(recorded);
      record(recorded);
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
  private synchronized StorePosition recorded(ArrivalStore store, Registration before)
      throws KeeperException, InterruptedException, IOException {
    if (before == null && store.reach().compareTo(StorePosition.START) <= 0) {
      ZKUtil.createNodeIfNotExistsNoWatch(
          zooKeeper, storeZnode, StorePosition.START.toZnode(address), CreateMode.PERSISTENT);
    }
    Stat stat = new Stat();
    byte[] data = read(stat);
    StorePosition known = data == null ? null : StorePosition.ofZnode(data);
    if (known == null) {
      throw new IOException(
          "ZooKeeper does not know how much of the folder was acknowledged (" + storeZnode
              + "): begin anew with another folder, znode and peer");
    }
    version = stat.getVersion();
    if (before != null) {
      before.refuseOther(data, version);
    }
    return known;
  }

  /** Reads the znode as it is now: ZooKeeper's server of this session may be behind the others. */
  private byte[] read(Stat stat) throws KeeperException {
    zooKeeper.getRecoverableZooKeeper().sync(storeZnode, null, null);
    return ZKUtil.getDataNoWatch(zooKeeper, storeZnode, stat);
  }

  /** Throws unless a version of the znode is the one that this process wrote last. */
  private synchronized void refuseOther(byte[] data, int now) throws TakenOverException {
    boolean isUncertain = uncertain != null && now == version + 1 && Arrays.equals(data, uncertain);
    if (now != version && !isUncertain) {
      throw takenOver();
    }
  }

  private TakenOverException takenOver() {
    return new TakenOverException(
        "another witness has registered a folder with the id of this one (" + storeZnode
            + "), such as a copy of it: give each witness a new folder of its own");
  }

  private synchronized void record(StorePosition position) throws KeeperException, IOException {
    if (uncertain != null) {
      Stat stat = new Stat();
      refuseOther(read(stat), stat.getVersion());
      version = stat.getVersion();
    }
    uncertain = position.toZnode(address);
    try {
      ZKUtil.setData(zooKeeper, storeZnode, uncertain, version);
    } catch (KeeperException.BadVersionException error) {
      throw takenOver();
    }
    version++;
    uncertain = null;
    recorded = position;
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
        record(all);
      } catch (KeeperException error) {
        throw new IOException("cannot record at ZooKeeper what is acknowledged: " + error.getMessage(), error);
      }
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
