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
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * A folder with what a witness was sent. Each request is appended to one log, {@code N.log}, and is on disk before
 * {@link #keep} returns. A full log, or one that an earlier process left, becomes {@code N.set}: the same records, one a
 * key, sorted and without repetitions. {@link #prune} makes {@code FIRST-LAST.runs} of the sets of these numbers. A file
 * whose numbers another one has is left of a crash. Entries are in no memory, which therefore does not grow.
 *
 * <p>A database would be more than this needs: entries are only appended, and read as a whole. HBase's class path has
 * none, and the bindings of SQLite and RocksDB bring native code.
 */
final class ArrivalStore implements Closeable {
  /** Entries of a log. It becomes a set in a fraction of a second, in which requests wait. */
  static final int LOG_ENTRIES = 500_000;

  /** Runs in memory from which {@link #prune} begins another file. */
  private static final int MANY_RUNS = 2_000_000;

  /** Length from which a file of runs stays as it is; it then has about as many. */
  private static final long LONG_BYTES = 2 << 20;

  /** Bytes of a file that one call reads at most. */
  static final int PART_BYTES = 4 << 20;

  private static final String LOG = ".log";
  private static final String SET = ".set";
  private static final String RUNS = ".runs";
  private static final String FRESH = ".fresh";
  private static final Pattern READABLE =
      Pattern.compile("[0-9]+\\.(log|set)|[0-9]+-[0-9]+\\.runs|(store|cluster)\\.id");

  private final Path folder;
  private final int logEntries;
  private final FileChannel lock;
  private final Lock pruning = new ReentrantLock();
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
    removeSuperseded();
    for (Path left : files(LOG)) {
      seal(left, 0);
    }
    number = sealed().stream().mapToLong(ArrivalStore::last).max().orElse(0);
    openLog();
  }

  /** Returns true once entries can be kept. */
  synchronized boolean hasBegun() {
    return log != null;
  }

  /** Returns how far the folder goes. A set was made of a whole log. */
  StorePosition reach() throws IOException {
    StorePosition reach = StorePosition.START;
    for (Path set : sealed()) {
      reach = StorePosition.later(reach, new StorePosition(last(set) + 1, 0));
    }
    for (Path left : files(LOG)) {
      reach = StorePosition.later(reach, new StorePosition(last(left), ArrivalFile.end(left)));
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
    List<Path> all = new ArrayList<>(sealed());
    all.addAll(files(LOG));
    return LongStream.range(1, acknowledged.number)
        .allMatch(number -> all.stream().anyMatch(each -> first(each) <= number && number <= last(each)));
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
    } catch (IOException | RuntimeException | Error error) {
      throw broken(error);
    }
  }

  /** Keeps nothing from now on: a request that ended half-way has keys with numbers that the file lacks, or a set. */
  private synchronized IOException broken(Throwable error) {
    broken = error instanceof IOException ? (IOException) error : new IOException(error.toString(), error);
    return broken;
  }

  private void openLog() throws IOException {
    number++;
    entries = 0;
    log = new ArrivalFile(folder.resolve(number + LOG));
    forceFolder();
  }

  private void endLog() throws IOException {
    seal(folder.resolve(number + LOG), log.written());
    log.supersede();
    openLog();
  }

  /**
   * Makes runs of the settled entries, so that the folder grows no more by entries whose sequence ids follow each other.
   * Requests are kept meanwhile. A file is removed after the one that has all of its sequence ids is on disk.
   */
  void prune(Settled settled) throws IOException {
    if (!pruning.tryLock()) {
      return; // another run's call does it
    }
    try {
      if (endLogIfUsed()) {
        writeRuns(settled);
      }
    } finally {
      pruning.unlock();
    }
  }

  private synchronized boolean endLogIfUsed() throws IOException {
    if (log == null || broken != null) {
      return false;
    }
    try {
      if (entries > 0) {
        endLog();
      }
      return true;
    } catch (IOException | RuntimeException | Error error) {
      throw broken(error);
    }
  }

  private void writeRuns(Settled settled) throws IOException {
    List<Path> sets = setsToPrune();
    Arrivals runs = new Arrivals();
    long first = sets.isEmpty() ? 0 : first(sets.get(0));
    long next = first;
    boolean hasMore = false;
    for (Path set : sets) {
      if (first(set) != next) {
        throw new IOException(folder + " has no file with number " + next);
      }
      boolean isSet = set.toString().endsWith(SET);
      Arrivals read = isSet ? ArrivalFile.readSet(set) : ArrivalFile.readRuns(set);
      if (isSet && settled.isTooEarlyFor(read)) {
        break; // a later call writes it once, and no file of the same name has another content
      }
      runs.addAll(read);
      runs = runs.pruned(settled);
      hasMore |= isSet;
      next = last(set) + 1;
      if (runs.size() >= MANY_RUNS) {
        if (hasMore) {
          write(runs, first, next - 1);
        }
        runs = new Arrivals();
        first = next;
        hasMore = false;
      }
    }
    if (hasMore) {
      write(runs, first, next - 1);
    }
  }

  /** Returns the sets, after the last file of runs unless that is long. */
  private synchronized List<Path> setsToPrune() throws IOException {
    List<Path> found = new ArrayList<>();
    for (Path set : sealed()) {
      if (set.toString().endsWith(SET) || Files.size(set) < LONG_BYTES) {
        found.add(set);
      } else {
        found.clear();
      }
    }
    return found;
  }

  private void write(Arrivals runs, long first, long last) throws IOException {
    Path fresh = folder.resolve(first + "-" + last + FRESH);
    Files.deleteIfExists(fresh);
    try (ArrivalFile file = new ArrivalFile(fresh)) {
      file.appendRuns(runs);
    }
    synchronized (this) {
      Files.move(fresh, folder.resolve(first + "-" + last + RUNS), StandardCopyOption.ATOMIC_MOVE);
      forceFolder();
      removeSuperseded();
    }
  }

  private void removeSuperseded() throws IOException {
    List<Path> kept = sealed();
    for (Path file : files("")) {
      boolean isOne = file.toString().endsWith(LOG) || kept.contains(file);
      if (isOne && kept.stream().anyMatch(other -> isSuperseded(file, other))) {
        Files.delete(file);
      }
    }
  }

  private static boolean isSuperseded(Path file, Path other) {
    boolean isWithin = first(other) <= first(file) && last(file) <= last(other);
    return isWithin && !file.equals(other) && !(file.toString().endsWith(RUNS) && other.toString().endsWith(SET));
  }

  /**
   * Makes a set of a log. A crash in between leaves the log, or both; the log is then read again.
   *
   * @throws IOException also if the log has less than {@code length} bytes of whole records: a set passes for all
   */
  private void seal(Path from, long length) throws IOException {
    if (ArrivalFile.end(from) < length) {
      throw new IOException(from + " was cut short or damaged: entries that were acknowledged are lost");
    }
    Arrivals sets = ArrivalFile.read(from).asSets();
    if (sets.size() > 0) {
      Path fresh = folder.resolve(last(from) + FRESH);
      try (ArrivalFile file = new ArrivalFile(fresh)) {
        file.append(sets);
      }
      Files.move(fresh, folder.resolve(last(from) + SET), StandardCopyOption.ATOMIC_MOVE);
      forceFolder();
    }
    Files.delete(from);
  }

  private List<Path> files(String suffix) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.filter(each -> each.toString().endsWith(suffix)).sorted().collect(Collectors.toList());
    }
  }

  /** Returns the files that no longer change, in the order of their numbers. */
  private List<Path> sealed() throws IOException {
    return Stream.concat(files(SET).stream(), files(RUNS).stream())
        .sorted(Comparator.comparingLong(ArrivalStore::last))
        .collect(Collectors.toList());
  }

  private static long first(Path file) {
    return Long.parseLong(numbers(file)[0]);
  }

  private static long last(Path file) {
    String[] numbers = numbers(file);
    return Long.parseLong(numbers[numbers.length - 1]);
  }

  private static String[] numbers(Path file) {
    String name = file.getFileName().toString();
    return name.substring(0, name.lastIndexOf('.')).split("-");
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
