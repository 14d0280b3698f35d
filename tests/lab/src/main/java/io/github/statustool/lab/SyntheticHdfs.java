package io.github.statustool.lab;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo.DatanodeInfoBuilder;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.hdfs.protocol.proto.ClientNamenodeProtocolProtos.ClientNamenodeProtocol;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.BlockOpResponseProto;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.OpBlockChecksumProto;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.OpBlockChecksumResponseProto;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status;
import org.apache.hadoop.hdfs.protocol.proto.HdfsProtos.ChecksumTypeProto;
import org.apache.hadoop.hdfs.protocolPB.ClientNamenodeProtocolPB;
import org.apache.hadoop.hdfs.protocolPB.ClientNamenodeProtocolServerSideTranslatorPB;
import org.apache.hadoop.hdfs.protocolPB.PBHelperClient;
import org.apache.hadoop.ipc.ProtobufRpcEngine2;
import org.apache.hadoop.ipc.RPC;
import org.apache.hadoop.thirdparty.protobuf.ByteString;
import org.apache.hadoop.util.DataChecksum;

/**
 * NameNode and DataNode of any number of files {@code /data/NNNNNN/fNNNN}, made up as they are asked for: listings,
 * blocks and checksums, over Hadoop's own protocols. Prints the NameNode's port; ends with its standard input.
 */
public final class SyntheticHdfs {
  private static final int PER_FOLDER = 2_500;
  private static final int PAGE = 1_000;
  private static final int REPLICAS = 3;
  private static final int LENGTH = 1_000;
  private static final long BLOCK_SIZE = 128L << 20;

  private final long files;
  private final String pool;
  private final DatanodeInfo[] datanodes = new DatanodeInfo[REPLICAS];

  private SyntheticHdfs(long files, String pool, int port) {
    this.files = files;
    this.pool = pool;
    for (int replica = 0; replica < REPLICAS; replica++) {
      DatanodeID id = new DatanodeID("127.0.0.1", "localhost", "uuid-" + replica, port, 0, 0, 0);
      datanodes[replica] = new DatanodeInfoBuilder().setNodeID(id).build();
    }
  }

  /**
   * Serves.
   *
   * @param args how many files there are, and the id of their block pool
   */
  public static void main(String[] args) throws Exception {
    ServerSocket datanode = new ServerSocket(0, 1024, InetAddress.getLoopbackAddress());
    SyntheticHdfs hdfs = new SyntheticHdfs(Long.parseLong(args[0]), args[1], datanode.getLocalPort());
    Configuration conf = new HdfsConfiguration();
    RPC.setProtocolEngine(conf, ClientNamenodeProtocolPB.class, ProtobufRpcEngine2.class);
    RPC.Server namenode = new RPC.Builder(conf)
        .setProtocol(ClientNamenodeProtocolPB.class)
        .setInstance(ClientNamenodeProtocol.newReflectiveBlockingService(
            new ClientNamenodeProtocolServerSideTranslatorPB(hdfs.namenode())))
        .setBindAddress("127.0.0.1")
        .setPort(0)
        .setNumHandlers(4)
        .build();
    namenode.start();
    System.out.println(namenode.getListenerAddress().getPort());
    System.out.flush();
    ExecutorService threads = Executors.newCachedThreadPool();
    threads.execute(SyntheticHdfs::awaitEnd);
    while (true) {
      Socket client = datanode.accept();
      threads.execute(() -> answer(client));
    }
  }

  private static void awaitEnd() {
    try {
      while (System.in.read() >= 0) {
        continue;
      }
    } catch (IOException closed) {
      // the same
    }
    Runtime.getRuntime().halt(0);
  }

  /** What the tool's client asks of a NameNode; all else is not supported. */
  private ClientProtocol namenode() {
    return (ClientProtocol) Proxy.newProxyInstance(
        ClientProtocol.class.getClassLoader(), new Class<?>[] {ClientProtocol.class}, (proxy, method, given) -> {
          switch (method.getName()) {
            case "getFileInfo":
              return status((String) given[0]);
            case "getListing":
              return listing((String) given[0], (byte[]) given[1], (Boolean) given[2]);
            case "getBlockLocations":
              return blocks((String) given[0]);
            case "getServerDefaults":
              return new FsServerDefaults(
                  BLOCK_SIZE, 512, 65536, (short) REPLICAS, 4096, false, 0, DataChecksum.Type.CRC32C, "");
            default:
              throw new UnsupportedOperationException(method.getName());
          }
        });
  }

  private static HdfsFileStatus status(String path) {
    return path.equals("/") || path.startsWith("/data") ? folder("") : null;
  }

  private static HdfsFileStatus folder(String name) {
    return new HdfsFileStatus.Builder().isdir(true).path(bytes(name)).build();
  }

  private DirectoryListing listing(String path, byte[] after, boolean located) {
    boolean top = path.equals("/data");
    long first = top ? 0 : PER_FOLDER * Long.parseLong(path.substring(path.lastIndexOf('/') + 1));
    long count = top ? (files + PER_FOLDER - 1) / PER_FOLDER : Math.min(PER_FOLDER, files - first);
    String last = new String(after, StandardCharsets.UTF_8);
    long from = last.isEmpty() ? 0 : 1 + Long.parseLong(last.substring(top ? 0 : 1));
    // As a NameNode counts: each replica of a block that it shows.
    long upto = Math.min(count, from + (located && !top ? PAGE / REPLICAS : PAGE));
    List<HdfsFileStatus> page = new ArrayList<>();
    for (long at = from; at < upto; at++) {
      page.add(top ? folder(String.format("%06d", at)) : file(String.format("f%04d", at), first + at, located));
    }
    return new DirectoryListing(page.toArray(new HdfsFileStatus[0]), (int) (count - upto));
  }

  private HdfsFileStatus file(String name, long number, boolean located) {
    return new HdfsFileStatus.Builder()
        .path(bytes(name))
        .fileId(number)
        .length(LENGTH)
        .blocksize(BLOCK_SIZE)
        .replication(REPLICAS)
        .mtime(1)
        .perm(new FsPermission((short) 0644))
        .locations(located ? blocks(number) : null)
        .build();
  }

  private LocatedBlocks blocks(String path) {
    String[] parts = path.split("/");
    return blocks(PER_FOLDER * Long.parseLong(parts[2]) + Long.parseLong(parts[3].substring(1)));
  }

  private LocatedBlocks blocks(long number) {
    LocatedBlock block = new LocatedBlock(new ExtendedBlock(pool, number, LENGTH, 1), datanodes);
    return new LocatedBlocks(LENGTH, false, List.of(block), block, true, null, null);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** One checksum, after which a DataNode closes the connection. */
  private static void answer(Socket client) {
    try (Socket socket = client;
        DataInputStream in = new DataInputStream(socket.getInputStream());
        DataOutputStream out = new DataOutputStream(socket.getOutputStream())) {
      in.readShort(); // the protocol's version
      in.readByte(); // the operation
      long block = OpBlockChecksumProto.parseFrom(PBHelperClient.vintPrefixed(in))
          .getHeader().getBlock().getBlockId();
      OpBlockChecksumResponseProto checksum = OpBlockChecksumResponseProto.newBuilder()
          .setBytesPerCrc(512)
          .setCrcPerBlock(0)
          .setCrcType(ChecksumTypeProto.CHECKSUM_CRC32C)
          .setBlockChecksum(ByteString.copyFrom(ByteBuffer.allocate(16).putLong(0).putLong(block).array()))
          .build();
      BlockOpResponseProto.newBuilder()
          .setStatus(Status.SUCCESS)
          .setChecksumResponse(checksum)
          .build()
          .writeDelimitedTo(out);
      out.flush();
    } catch (IOException gone) {
      // the client's end is its own business
    }
  }
}
