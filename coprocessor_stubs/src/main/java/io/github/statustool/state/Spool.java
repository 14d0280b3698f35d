package io.github.statustool.state;

import java.io.BufferedReader;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.ClusterId;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.apache.hadoop.hbase.util.FSUtils;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/**
 * Rows in the cluster's file system: of requests since the last flush, and what a server that stopped could not write to
 * the state table. Any tracker puts them into the table later and deletes the file; doing so twice is harmless.
 *
 * <p>Each cluster has a folder of its own. Trackers would take files of another cluster for those of servers that are
 * gone, and put their rows into the wrong table.
 */
public final class Spool implements TableMark.MarkFile {
  private static final String SUFFIX = ".jsonl";
  /** Prefix of the empty file whose name ends with the mark of the state table; the highest one counts. */
  private static final String MARK = "mark-";
  private static final String UNFINISHED = ".tmp";
  /**
   * After so long, nobody finishes an unfinished file. A server whose znode has gone may still write its last rows, but
   * its JVM does not wait so long.
   */
  private static final long ABANDONED_MS = 3_600_000;
  /** Suffix of a file that may still be appended to, so that its last line may not be complete. */
  private static final String GROWING = ".growing" + SUFFIX;

  /** Finds the folder; called until it succeeds. */
  private interface Finder {
    Path find() throws IOException;
  }

  private final Configuration conf;
  private final Finder finder;
  private Path folder;
  private FileSystem fileSystem;
  private final AtomicInteger written = new AtomicInteger();

  public Spool(Configuration conf, Path folder) {
    this(conf, () -> folder);
  }

  private Spool(Configuration conf, Finder finder) {
    this.conf = conf;
    this.finder = finder;
  }

  /** Returns the spool in the cluster's subfolder of a folder that several clusters may share. */
  public static Spool ofCluster(Configuration conf, Path shared) {
    // The spool reads the id from HBase's root at its first use: a coprocessor must not wait for that when it starts.
    return new Spool(conf, () -> new Path(shared, clusterId(conf)));
  }

  private static String clusterId(Configuration conf) throws IOException {
    Path root = Settings.root(conf);
    // FileSystem.get() would return the region server's cached instance, which this would close for it.
    try (FileSystem files = FileSystem.newInstance(root.toUri(), conf)) {
      ClusterId id = FSUtils.getClusterId(files, root);
      if (id == null) {
        throw new FileNotFoundException(root + " has no cluster id");
      }
      return id.toString();
    }
  }

  private synchronized Path folder() throws IOException {
    if (folder == null) {
      folder = finder.find();
    }
    return folder;
  }

  /** Writes a temporary file and renames it, so that a file with the final name, which is returned, is complete. */
  public Path write(long origin, long now, List<StateRow> rows) throws IOException {
    String name = name(origin, now) + SUFFIX;
    Path unfinished = new Path(folder(), name + UNFINISHED);
    fileSystem().mkdirs(folder());
    // Outside of the try block: where nothing was created, a delete would wait once more for a NameNode that is away.
    OutputStream created = fileSystem().create(unfinished, true);
    try {
      write(rows, created);
      Path file = new Path(folder(), name);
      if (!fileSystem().rename(unfinished, file)) {
        throw new IOException("could not rename " + unfinished);
      }
      return file;
    } catch (Throwable t) {
      deleteAfter(t, unfinished);
      throw t;
    }
  }

  private static void write(List<StateRow> rows, OutputStream to) throws IOException {
    try (Writer out = new OutputStreamWriter(to, StandardCharsets.UTF_8)) {
      for (StateRow row : rows) {
        out.write(SpoolLine.terminated(row));
      }
    }
  }

  /** Deletes a file that could not be finished. HDFS takes creates while it is full: each attempt would leave one. */
  private void deleteAfter(Throwable failure, Path unfinished) {
    try {
      delete(unfinished);
    } catch (IOException | RuntimeException e) {
      failure.addSuppressed(e); // drain() deletes it once this server has gone
    }
  }

  private String name(long origin, long now) {
    return Ids.hex(origin) + "-" + now + "-" + written.getAndIncrement();
  }

  /** Begins a file that grows. It has its final name at once: what is appended is there for every reader. */
  public GrowingSpoolFile open(long origin, long now) throws IOException {
    fileSystem().mkdirs(folder());
    Path file = new Path(folder(), name(origin, now) + GROWING);
    return new GrowingSpoolFile(file, fileSystem().create(file, false));
  }

  public void delete(Path file) throws IOException {
    fileSystem().delete(file, false);
  }

  /**
   * Puts the rows of all files into the table. A file is deleted only after all its rows are stored. A damaged file
   * stays for an operator to inspect, and does not prevent other files from being read. A file that a killed server has
   * not finished is deleted.
   */
  public int drain(StateStore store) throws IOException {
    int files = 0;
    IOException failure = null;
    List<FileStatus> all = list();
    boolean areLiveAsked = all.stream().anyMatch(file -> isGrowing(file.getPath()) || isUnfinished(file.getPath()));
    // After the listing: a file's server that is not live by now is gone. In the other order, a server that starts in
    // between would look gone, and its file would be deleted while it appends.
    Set<String> live = areLiveAsked ? prefixes(store.liveServers()) : Set.of();
    for (FileStatus file : all) {
      try {
        if (isUnfinished(file.getPath())) {
          deleteIfAbandoned(file, live);
          continue;
        }
        if (isGrowing(file.getPath()) && !isAbandoned(file.getPath(), live)) {
          continue;
        }
        // In the order of a flush: a failed write may have stored some rows only.
        store.putInOrder(read(file.getPath()));
        fileSystem().delete(file.getPath(), false);
        files++;
      } catch (FileNotFoundException e) {
        continue; // another tracker was faster
      } catch (IOException e) {
        failure = e;
      } catch (RuntimeException e) {
        failure = new IOException("cannot write the rows of " + file.getPath(), e); // the files after it can be
      }
    }
    if (failure != null) {
      throw failure;
    }
    return files;
  }

  /** Returns what the names of the servers' files begin with. Once for all files: each server may have one. */
  private static Set<String> prefixes(Collection<ServerName> servers) {
    return servers.stream().map(server -> Ids.hex(Ids.origin(server.toString()))).collect(Collectors.toSet());
  }

  private static boolean isGrowing(Path file) {
    return file.getName().endsWith(GROWING);
  }

  private static boolean isUnfinished(Path file) {
    return file.getName().endsWith(SUFFIX + UNFINISHED);
  }

  /** Deletes what a server that was killed has left behind. What it says was never vouched for. */
  private void deleteIfAbandoned(FileStatus file, Set<String> live) throws IOException {
    long age = EnvironmentEdgeManager.currentTime() - file.getModificationTime();
    if (!live.contains(server(file.getPath())) && age > ABANDONED_MS) {
      fileSystem().delete(file.getPath(), false);
    }
  }

  /** Returns the server that writes a file, as the file's name begins with it. */
  private static String server(Path file) {
    return file.getName().split("-", 2)[0];
  }

  /** Returns true if nobody appends to a growing file any more: its server is gone, and has lost the lease. */
  private boolean isAbandoned(Path file, Set<String> live) throws IOException {
    if (live.contains(server(file))) {
      return false;
    }
    FileSystem files = fileSystem();
    // What is appended to a file that has been deleted is lost without an error.
    return !(files instanceof DistributedFileSystem) || ((DistributedFileSystem) files).recoverLease(file);
  }

  @Override
  public long read() throws IOException {
    return marks().stream().mapToLong(Spool::mark).max().orElse(0);
  }

  @Override
  public void write(long mark) throws IOException {
    fileSystem().mkdirs(folder());
    // Before the old files go: a reader in between sees several, of which the highest counts.
    fileSystem().create(new Path(folder(), MARK + mark), true).close();
    for (Path file : marks()) {
      if (mark(file) < mark) {
        fileSystem().delete(file, false);
      }
    }
  }

  private List<Path> marks() throws IOException {
    List<Path> marks = new ArrayList<>();
    if (fileSystem().exists(folder())) {
      for (FileStatus file : fileSystem().listStatus(folder())) {
        if (mark(file.getPath()) > 0) {
          marks.add(file.getPath());
        }
      }
    }
    return marks;
  }

  /** Returns 0 for another file. */
  private static long mark(Path file) {
    String name = file.getName();
    try {
      return name.startsWith(MARK) ? Long.parseLong(name.substring(MARK.length())) : 0;
    } catch (NumberFormatException e) {
      return 0;
    }
  }

  private List<FileStatus> list() throws IOException {
    List<FileStatus> files = new ArrayList<>();
    if (fileSystem().exists(folder())) {
      for (FileStatus file : fileSystem().listStatus(folder())) {
        if (file.getPath().getName().endsWith(SUFFIX) || isUnfinished(file.getPath())) {
          files.add(file);
        }
      }
    }
    return files;
  }

  private List<StateRow> read(Path file) throws IOException {
    List<StateRow> rows = new ArrayList<>();
    try (BufferedReader in =
        new BufferedReader(new InputStreamReader(fileSystem().open(file), StandardCharsets.UTF_8))) {
      String line = in.readLine();
      while (line != null) {
        String next = in.readLine();
        // A crash cuts the last line. No request counts as recorded by it: the hflush() that wrote it had not returned.
        if (next != null || !isGrowing(file) || SpoolLine.isWhole(line)) {
          rows.add(SpoolLine.parse(line));
        }
        line = next;
      }
    }
    return rows;
  }

  /** Returns a FileSystem instance of our own. */
  private synchronized FileSystem fileSystem() throws IOException {
    if (fileSystem == null) {
      Configuration own = new Configuration(conf);
      // Hadoop's shutdown hook would close it just when the spool needs it.
      own.setBoolean("fs.automatic.close", false);
      fileSystem = FileSystem.newInstance(folder().toUri(), own);
    }
    return fileSystem;
  }
}
