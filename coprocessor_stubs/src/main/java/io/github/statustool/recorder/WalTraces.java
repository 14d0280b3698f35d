package io.github.statustool.recorder;

import io.github.statustool.server.WalSyncer;
import io.github.statustool.state.HBaseStateStore;
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
 * Determines whether a region server without a tracker can have written anything. HBase creates a server's znode first,
 * then its WAL directory, and the first WAL together with the first region: a server that failed during its start, or
 * never had a region, has no WAL. A WAL moves from {@code WALs/<server>} through {@code WALs/<server>-splitting} to
 * {@code oldWALs} (or {@code corrupt}), where HBase keeps it for a while. Why this order of searching: a WAL that moves
 * meanwhile is still found, because it only moves towards the directories that are searched later.
 */
public final class WalTraces implements Sweep.Traces {
  private static final String TTL_KEY = "hbase.master.logcleaner.ttl";
  private static final long DEFAULT_TTL_MS = 600_000;
  private static final long MARGIN_MS = 60_000;

  private final Configuration conf;
  private final LongSupplier clock;
  private final long timeout;

  public WalTraces(Configuration conf, LongSupplier clock, long timeout) {
    this.conf = conf;
    this.clock = clock;
    this.timeout = timeout;
  }

  /** Also returns false if there is no proof. */
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

  /**
   * Returns true if the server's folder is empty. A live server has its current WAL there.
   *
   * @throws IOException also if it is gone, as of a server that has just crashed
   */
  private boolean hasEmptyFolder(String server) throws IOException {
    Path folder = new Path(root(), HConstants.HREGION_LOGDIR_NAME + Path.SEPARATOR + server);
    return !fileSystem().listStatusIterator(folder).hasNext();
  }

  /**
   * Returns true if the server has no WAL anywhere. A server that ended would still have its WALs archived, if it
   * started more recently than HBase keeps archived WALs.
   */
  private boolean isNowhere(String server) throws IOException {
    long age = clock.getAsLong() - ServerName.valueOf(server).getStartCode();
    // The margin covers the clocks: the start code is a time of the server that is gone, the age is by this one's.
    if (age > conf.getLong(TTL_KEY, DEFAULT_TTL_MS) - MARGIN_MS) {
      return false;
    }
    String prefix = URLEncoder.encode(server, StandardCharsets.UTF_8) + ".";
    Path wals = new Path(root(), HConstants.HREGION_LOGDIR_NAME);
    boolean folder = anyIn(wals, name -> name.equals(server)) || anyIn(wals, name -> name.startsWith(server + "-"));
    Path archive = new Path(root(), HConstants.HREGION_OLDLOGDIR_NAME);
    // With hbase.separate.oldlogdir.by.regionserver, the archive has a folder for each server, by its bare name.
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
