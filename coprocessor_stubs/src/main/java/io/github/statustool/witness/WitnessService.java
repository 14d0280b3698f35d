package io.github.statustool.witness;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Consumer;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellScanner;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.ipc.HBaseRpcController;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.AdminService;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.GetServerInfoResponse;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.ReplicateWALEntryRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.ReplicateWALEntryResponse;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.ServerInfo;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.WALEntry;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.BulkLoadDescriptor;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.WALKey;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hbase.thirdparty.com.google.protobuf.ServiceException;

/**
 * Calls that a replication source makes to a region server: {@code replicateWALEntry}, and {@code getServerInfo} by
 * those that only look whether it is there.
 */
final class WitnessService extends PartialService<AdminService.BlockingInterface> {
  /** Stands for the family of a bulk load that its client does not want to be replicated. No family has a slash. */
  static final String LOCAL_LOAD = "METAFAMILY/local";

  private final ArrivalStore store;
  private final ServerName server;
  private final Acknowledged acknowledged;
  private final Consumer<IOException> broken;

  /** Where it is recorded, outside the store, how much of it is acknowledged. */
  interface Acknowledged {
    void reach(StorePosition position) throws IOException;
  }

  /**
   * @param acknowledged is called before a request is acknowledged, which is refused if it throws
   * @param broken is called if the store cannot keep a request; the process must end
   */
  WitnessService(ArrivalStore store, ServerName server, Access access, Acknowledged acknowledged,
      Consumer<IOException> broken) {
    super(AdminService.BlockingInterface.class, access);
    this.store = store;
    this.server = server;
    this.acknowledged = acknowledged;
    this.broken = broken;
  }

  @Override
  Object answer(String call, Object controller, Object request) throws ServiceException {
    switch (call) {
      case "replicateWALEntry":
        return replicate((HBaseRpcController) controller, (ReplicateWALEntryRequest) request);
      case "getServerInfo":
        return GetServerInfoResponse.newBuilder()
            .setServerInfo(ServerInfo.newBuilder().setServerName(ProtobufUtil.toServerName(server)))
            .build();
      default:
        return null;
    }
  }

  private ReplicateWALEntryResponse replicate(HBaseRpcController controller, ReplicateWALEntryRequest request)
      throws ServiceException {
    CellScanner cells = controller.cellScanner();
    controller.setCellScanner(null);
    try {
      Arrivals arrivals = arrivals(request.getEntryList(), cells);
      if (!store.hasBegun()) {
        throw new IOException("the witness is not registered yet: send it again");
      }
      if (arrivals.size() > 0) {
        acknowledged.reach(kept(arrivals));
      }
    } catch (IOException error) {
      throw new ServiceException(error);
    }
    return ReplicateWALEntryResponse.getDefaultInstance();
  }

  private StorePosition kept(Arrivals arrivals) throws IOException {
    try {
      return store.keep(arrivals);
    } catch (IOException error) {
      broken.accept(error);
      throw error;
    }
  }

  /** Reads of the cells only their families. */
  static Arrivals arrivals(List<WALEntry> entries, CellScanner cells) throws IOException {
    Arrivals arrivals = new Arrivals();
    for (WALEntry entry : entries) {
      WALKey key = entry.getKey();
      arrivals.add(keyOf(key, families(cells, entry.getAssociatedCellCount())), key.getLogSequenceNumber(),
          key.getWriteTime());
    }
    return arrivals;
  }

  private static ArrivalKey keyOf(WALKey key, List<String> families) {
    List<UUID> clusters = new ArrayList<>(key.getClusterIdsCount());
    key.getClusterIdsList().forEach(id -> clusters.add(new UUID(id.getMostSigBits(), id.getLeastSigBits())));
    String table = TableName.valueOf(key.getTableName().toByteArray()).getNameAsString();
    return new ArrivalKey(table, key.getEncodedRegionName().toStringUtf8(), clusters, families);
  }

  private static List<String> families(CellScanner cells, int count) throws IOException {
    TreeSet<String> families = new TreeSet<>();
    byte[] last = null;
    for (int left = count; left > 0; left--) {
      if (cells == null || !cells.advance()) {
        throw new IOException("the request has fewer cells than its entries say: send it again");
      }
      Cell cell = cells.current();
      if (last == null || !CellUtil.matchingFamily(cell, last)) {
        last = CellUtil.cloneFamily(cell);
        families.add(isLocalLoad(cell) ? LOCAL_LOAD : Bytes.toString(last));
      }
    }
    return new ArrayList<>(families);
  }

  /** Returns true for the marker of a load that HBase's sink skips. A marker has an entry of its own. */
  private static boolean isLocalLoad(Cell cell) {
    if (!CellUtil.matchingFamily(cell, WALEdit.METAFAMILY)) {
      return false;
    }
    try {
      BulkLoadDescriptor load = WALEdit.getBulkLoadDescriptor(cell);
      return load != null && !load.getReplicate();
    } catch (IOException e) {
      return true; // a marker that cannot be parsed is no load that was shipped
    }
  }
}
