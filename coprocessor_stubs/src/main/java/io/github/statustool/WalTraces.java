package io.github.statustool;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.util.CommonFSUtils;

/**
 * Whether a region server without a tracker can have written anything. HBase makes a server's znode first, then its
 * folder of WALs, and the first WAL with the first region: a server that failed during its start, or has no region,
 * never had one. A WAL goes from {@code WALs/<server>} by {@code WALs/<server>-splitting} to {@code oldWALs} (or
 * {@code corrupt}), and is kept there for a while; looked for in that order, it cannot slip through.
 */
final class WalTraces implements Sweep.Traces {
  private static final String TTL_KEY = "hbase.master.logcleaner.ttl";
  private static final long DEFAULT_TTL_MS = 600_000;
  private static final long MARGIN_MS = 60_000;

  private final Configuration conf;
  private final LongSupplier clock;
  private final long timeout;

  WalTraces(Configuration conf, LongSupplier clock, long timeout) {
    this.conf = conf;
    this.clock = clock;
    this.timeout = timeout;
  }

  /** False as well where it cannot be shown. */
  @Override
  public boolean neverWrote(String server, boolean live) {
    AtomicBoolean shown = new AtomicBoolean();
    try {
      HBaseStateStore.await(WalSyncer.inNewThread(() -> shown.set(live ? hasEmptyFolder(server) : isNowhere(server))),
          timeout);
    } catch (IOException e) {
      return false;
    }
    return shown.get();
  }

  /** Of a server that lives, the current WAL would be there. */
  private boolean hasEmptyFolder(String server) throws IOException {
    Path folder = new Path(root(), HConstants.HREGION_LOGDIR_NAME + Path.SEPARATOR + server);
    return fileSystem().exists(folder) && !anyIn(folder, name -> true);
  }

  /** What it wrote would still be archived, for it has not been there for as long as HBase keeps that. */
  private boolean isNowhere(String server) throws IOException {
    long age = clock.getAsLong() - ServerName.valueOf(server).getStartCode();
    if (age > conf.getLong(TTL_KEY, DEFAULT_TTL_MS) - MARGIN_MS) {
      return false;
    }
    String prefix = URLEncoder.encode(server, StandardCharsets.UTF_8) + ".";
    Path wals = new Path(root(), HConstants.HREGION_LOGDIR_NAME);
    boolean folder = anyIn(wals, name -> name.equals(server)) || anyIn(wals, name -> name.startsWith(server + "-"));
    Path archive = new Path(root(), HConstants.HREGION_OLDLOGDIR_NAME);
    return !folder && !anyIn(archive, name -> name.startsWith(prefix) || name.equals(server))
        && !anyIn(new Path(root(), HConstants.CORRUPT_DIR_NAME), name -> name.startsWith(prefix));
  }

  private Path root() throws IOException {
    return CommonFSUtils.getWALRootDir(conf);
  }

  private FileSystem fileSystem() throws IOException {
    return CommonFSUtils.getWALFileSystem(conf);
  }

  private boolean anyIn(Path folder, Predicate<String> sought) throws IOException {
    try {
      RemoteIterator<FileStatus> entries = fileSystem().listStatusIterator(folder);
      while (entries.hasNext()) {
        if (sought.test(entries.next().getPath().getName())) {
          return true;
        }
      }
      return false;
    } catch (FileNotFoundException e) {
      return false;
    }
  }
}
