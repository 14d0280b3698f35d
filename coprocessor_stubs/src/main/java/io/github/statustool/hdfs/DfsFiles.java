package io.github.statustool.hdfs;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.client.HdfsDataInputStream;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.security.UserGroupInformation;

/** One HDFS by Hadoop's own client, which finds the active NameNode and the replicas, and logs in, by itself. */
final class DfsFiles implements HdfsFiles {
  private static final int READ_BYTES = 1 << 20;
  /**
   * Settings that fail fast. The tool retries by itself for as long as its options say, so that a wrong address shows
   * at once: Hadoop's client alone would try a NameNode that is away for a quarter of an hour.
   */
  private static final Map<String, String> OURS = Map.of(
      "ipc.client.connect.timeout", "10000",
      "ipc.client.connect.max.retries", "1",
      "ipc.client.connect.retry.interval", "100",
      "ipc.client.connect.max.retries.on.timeouts", "0",
      "ipc.client.rpc-timeout.ms", "120000",
      "dfs.client.retry.max.attempts", "1",
      "dfs.client.failover.max.attempts", "4",
      "dfs.client.failover.sleep.base.millis", "50",
      "dfs.client.failover.sleep.max.millis", "500",
      // Needs Hadoop's native library, which is not here.
      "dfs.client.read.shortcircuit", "false");

  /** More than are listed ahead of their checksums: a listing's page shows at most {@code dfs.ls.limit} of them. */
  private static final int LISTED_BLOCKS = 30_000;

  private final ListedBlocks listed = new ListedBlocks(LISTED_BLOCKS);
  private final DFSClient client;
  /** True if listings show blocks that DataNodes accept: never with tokens, which a listing does not have. */
  private final boolean listsBlocks;

  /**
   * @param uri {@code hdfs://} and the name service or the NameNode's RPC address
   * @param site properties of the site files
   */
  DfsFiles(String uri, Map<String, String> site) throws IOException {
    Configuration conf = new HdfsConfiguration();
    site.forEach(conf::set);
    OURS.forEach(conf::set);
    UserGroupInformation.setConfiguration(conf);
    SecurityUtil.setConfiguration(conf);
    listsBlocks = !UserGroupInformation.isSecurityEnabled();
    client = new DFSClient(URI.create(uri), conf) {
      @Override
      protected LocatedBlocks getBlockLocations(String path, long length) throws IOException {
        LocatedBlocks known = listed.take(path);
        return known == null ? super.getBlockLocations(path, length) : known;
      }
    };
  }

  @Override
  public HdfsFileStatus status(String path) throws IOException {
    return client.getFileInfo(path);
  }

  @Override
  public DirectoryListing page(String path, String after) throws IOException {
    DirectoryListing page = client.listPaths(path, after.getBytes(StandardCharsets.UTF_8), listsBlocks);
    if (page != null && listsBlocks) {
      for (HdfsFileStatus entry : page.getPartialListing()) {
        listed.offer(entry.getFullName(path), entry);
      }
    }
    return page;
  }

  @Override
  public ContentSummary summary(String path) throws IOException {
    return client.getNamenode().getContentSummary(path);
  }

  @Override
  public FileChecksum checksum(String path) throws IOException {
    return client.getFileChecksum(path, Long.MAX_VALUE);
  }

  @Override
  public long crc(String path, long offset, long length) throws IOException {
    CRC32C crc = new CRC32C();
    CRC32 other = new CRC32(); // what ends with its own CRC32C has the same one, whatever it holds
    byte[] buffer = new byte[(int) Math.min(READ_BYTES, length)];
    try (HdfsDataInputStream in = client.createWrappedInputStream(client.open(path))) {
      in.seek(offset);
      for (long left = length; left > 0; ) {
        int read = read(in, buffer, left);
        crc.update(buffer, 0, read);
        other.update(buffer, 0, read);
        left -= read;
      }
    } catch (EOFException end) { // by its name the NameNode would have hung up
      throw new IOException("the file is shorter than it was listed", end);
    }
    return crc.getValue() << 32 | other.getValue();
  }

  private static int read(InputStream in, byte[] buffer, long left) throws IOException {
    int read = in.read(buffer, 0, (int) Math.min(buffer.length, left));
    if (read <= 0) {
      throw new EOFException();
    }
    return read;
  }

  @Override
  public String pool(String path) throws IOException {
    LocatedBlocks blocks = client.getLocatedBlocks(path, 0, 1);
    boolean none = blocks == null || blocks.getLocatedBlocks().isEmpty();
    return none ? "" : blocks.get(0).getBlock().getBlockPoolId();
  }
}
