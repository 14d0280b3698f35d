package io.github.statustool.witness;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * A folder with what a witness was sent. Each request is appended to one log, {@code N.log}, and is on disk before
 * {@link #keep} returns. A full log, or one that an earlier process left, becomes {@code N.set}: the same records, one a
 * key, sorted and without repetitions. Entries are in no memory, which therefore does not grow.
 *
 * <p>A database would be more than this needs: entries are only appended, and read as a whole. HBase's class path has
 * none, and the bindings of SQLite and RocksDB bring native code.
 */
final class ArrivalStore implements Closeable {
  /** Entries of a log. It becomes a set in a fraction of a second, in which requests wait. */
  static final int LOG_ENTRIES = 500_000;

  /** Bytes of a file that one call reads at most. */
  static final int PART_BYTES = 4 << 20;

  private static final String LOG = ".log";
  private static final String SET = ".set";
  private static final String FRESH = ".fresh";
  private static final Pattern READABLE = Pattern.compile("[0-9]+\\.(log|set)|(store|cluster)\\.id");

  private final Path folder;
  private final int logEntries;
  private final FileChannel lock;
  private ArrivalFile log;
  private long number;
  private int entries;
  private IOException broken;

  /**
   * Opens or creates a folder, which {@link #begin} makes ready.
   *
   * @throws IOException also if another process has it open
   */
  ArrivalStore(Path folder, int logEntries) throws IOException {
    this.folder = Files.createDirectories(folder);
    this.logEntries = logEntries;
    lock = FileChannel.open(folder.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    try {
      if (!isLocked()) {
        throw new IOException("another witness uses the folder " + folder);
      }
    } catch (IOException | RuntimeException error) {
      lock.close();
      throw error;
    }
  }

  /**
   * Makes the folder ready to be filled.
   *
   * @param acknowledged how much of it was acknowledged, as is known elsewhere
   * @throws IOException if the folder has less than that, as one that was restored from a backup; also if one of its
   *     files is damaged
   */
  synchronized void begin(StorePosition acknowledged) throws IOException {
    if (log != null) {
      return;
    }
    if (reach().compareTo(acknowledged) < 0 || !hasAllBefore(acknowledged)) {
      throw new IOException(
          folder + " has less than was acknowledged, as if it were restored from a backup: remove the witness's peer,"
              + " and begin anew with another folder, znode and peer");
    }
    for (Path fresh : files(FRESH)) {
      Files.delete(fresh);
    }
    for (Path left : files(LOG)) {
      seal(left);
    }
    number = files(SET).stream().mapToLong(ArrivalStore::number).max().orElse(0);
    openLog();
  }

  /** Returns true once entries can be kept. */
  synchronized boolean hasBegun() {
    return log != null;
  }

  /** Returns how far the folder goes. A set was made of a whole log. */
  StorePosition reach() throws IOException {
    StorePosition reach = StorePosition.START;
    for (Path set : files(SET)) {
      reach = StorePosition.later(reach, new StorePosition(number(set) + 1, 0));
    }
    for (Path left : files(LOG)) {
      reach = StorePosition.later(reach, new StorePosition(number(left), ArrivalFile.end(left)));
    }
    return reach;
  }

  /** Returns the files with all that was kept, and their lengths: of a log only the end changes until it is a set. */
  synchronized Map<String, Long> lengths() throws IOException {
    Map<String, Long> lengths = new TreeMap<>();
    for (Path file : files("")) {
      String name = file.getFileName().toString();
      if (READABLE.matcher(name).matches()) {
        lengths.put(name, Files.size(file));
      }
    }
    return lengths;
  }

  /**
   * Returns what a file has from an offset on, at most {@link #PART_BYTES}.
   *
   * @throws java.nio.file.NoSuchFileException if it is none of {@link #lengths} by now
   */
  byte[] part(String name, long offset) throws IOException {
    if (!READABLE.matcher(name).matches()) {
      throw new NoSuchFileException(name);
    }
    try (FileChannel file = FileChannel.open(folder.resolve(name), StandardOpenOption.READ)) {
      long from = Math.max(0, offset);
      ByteBuffer part = ByteBuffer.allocate((int) Math.min(PART_BYTES, Math.max(0, file.size() - from)));
      while (part.hasRemaining() && file.read(part, from + part.position()) >= 0) {
        // One read may return less than there is.
      }
      return Arrays.copyOf(part.array(), part.position());
    }
  }

  private boolean hasAllBefore(StorePosition acknowledged) throws IOException {
    Set<Long> numbers =
        Stream.concat(files(SET).stream(), files(LOG).stream()).map(ArrivalStore::number).collect(Collectors.toSet());
    return LongStream.range(1, acknowledged.number).allMatch(numbers::contains);
  }

  private boolean isLocked() throws IOException {
    try {
      return lock.tryLock() != null;
    } catch (OverlappingFileLockException error) {
      return false;
    }
  }

  /** Returns the folder's id, which is drawn when it is first used. */
  UUID id() throws IOException {
    UUID known = readId("store.id");
    if (known == null) {
      known = UUID.randomUUID();
      writeId("store.id", known);
    }
    return known;
  }

  /** Returns the id of the cluster as which the witness poses; null in a new folder. */
  UUID clusterId() throws IOException {
    return readId("cluster.id");
  }

  void clusterId(UUID id) throws IOException {
    writeId("cluster.id", id);
  }

  /**
   * Returns once the entries are on disk, with how far they reach.
   *
   * @throws IOException if they may not be; nothing is kept from then on, as nobody knows what a disk has of a file
   *     that could not be written once
   */
  StorePosition keep(Arrivals arrivals) throws IOException {
    try {
      ArrivalFile file;
      StorePosition end;
      synchronized (this) {
        if (broken != null) {
          throw broken;
        }
        if (entries >= logEntries) {
          endLog();
        }
        file = log;
        end = new StorePosition(number, file.append(arrivals));
        entries += arrivals.size();
      }
      file.force(end.length);
      return end;
    } catch (IOException error) {
      synchronized (this) {
        broken = error;
      }
      throw error;
    }
  }

  private void openLog() throws IOException {
    number++;
    entries = 0;
    log = new ArrivalFile(folder.resolve(number + LOG));
    forceFolder();
  }

  private void endLog() throws IOException {
    seal(folder.resolve(number + LOG));
    log.supersede();
    openLog();
  }

  /** Makes a set of a log. A crash in between leaves the log, or both; the log is then read again. */
  private void seal(Path from) throws IOException {
    Arrivals sets = ArrivalFile.read(from).asSets();
    if (sets.size() > 0) {
      Path fresh = folder.resolve(number(from) + FRESH);
      try (ArrivalFile file = new ArrivalFile(fresh)) {
        file.append(sets);
      }
      Files.move(fresh, folder.resolve(number(from) + SET), StandardCopyOption.ATOMIC_MOVE);
      forceFolder();
    }
    Files.delete(from);
  }

  private List<Path> files(String suffix) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.filter(each -> each.toString().endsWith(suffix)).sorted().collect(Collectors.toList());
    }
  }

  private static long number(Path file) {
    String name = file.getFileName().toString();
    return Long.parseLong(name.substring(0, name.lastIndexOf('.')));
  }

  private UUID readId(String name) throws IOException {
    Path file = folder.resolve(name);
    return Files.exists(file) ? UUID.fromString(Files.readString(file).trim()) : null;
  }

  private void writeId(String name, UUID id) throws IOException {
    Path fresh = folder.resolve(name + ".new");
    try (FileChannel file =
        FileChannel.open(
            fresh, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
      file.write(ByteBuffer.wrap((id + "\n").getBytes(StandardCharsets.US_ASCII)));
      file.force(true);
    }
    Files.move(fresh, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    forceFolder();
  }

  private void forceFolder() throws IOException {
    try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
      channel.force(true);
    }
  }

  @Override
  public synchronized void close() throws IOException {
    broken = new IOException("the witness ends");
    if (log != null) {
      log.close();
    }
    lock.close();
  }
}
