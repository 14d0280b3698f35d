package io.github.statustool.witness;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ArrivalStoreTest {
  private static final UUID A = new UUID(1, 2);
  private static final UUID B = new UUID(3, -4);
  private static final long MS = 1_700_000_000_000L;

  @TempDir Path folder;

  private static ArrivalKey key(String region) {
    return new ArrivalKey("ns:t", region, List.of(A), List.of("f"));
  }

  private static Arrivals request(ArrivalKey key, long... sequenceIds) {
    Arrivals arrivals = new Arrivals();
    for (long each : sequenceIds) {
      arrivals.add(key, each, MS + each);
    }
    return arrivals;
  }

  private ArrivalStore open(int logEntries) throws IOException {
    ArrivalStore store = new ArrivalStore(folder, logEntries);
    try {
      store.begin(StorePosition.START);
      return store;
    } catch (IOException error) {
      store.close();
      throw error;
    }
  }

  /** All that the folder holds, read from its files, by key: write times by sequence ids. */
  private Map<ArrivalKey, Map<Long, Long>> content() throws IOException {
    Map<ArrivalKey, Map<Long, Long>> found = new HashMap<>();
    for (Path file : files("")) {
      if (file.toString().matches(".*\\.(log|set)")) {
        ArrivalFile.read(file).byKey().forEach((key, all) -> {
          Map<Long, Long> set = found.computeIfAbsent(key, absent -> new TreeMap<>());
          all.forEach(each -> set.put(each.first, each.low));
        });
      }
    }
    return found;
  }

  private List<Path> files(String suffix) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.filter(each -> each.toString().endsWith(suffix)).sorted().collect(Collectors.toList());
    }
  }

  private Path log() throws IOException {
    List<Path> logs = files(".log");
    assertEquals(1, logs.size());
    return logs.get(0);
  }

  @Test
  void whatIsKeptIsInTheFilesAtOnceAndAfterARestart() throws IOException {
    ArrivalKey twoFamilies = new ArrivalKey("u", "r1", List.of(A, B), List.of("f", "g"));
    ArrivalStore store = open(100);
    store.keep(request(key("r1"), 7, 9, 8));
    store.keep(request(key("r2"), 1L << 40));
    store.keep(request(twoFamilies, 1));
    store.keep(request(key("r1"), 9, 12));
    Map<ArrivalKey, Map<Long, Long>> kept = content();
    assertEquals(Map.of(7L, MS + 7, 8L, MS + 8, 9L, MS + 9, 12L, MS + 12), kept.get(key("r1")));
    assertEquals(Map.of(1L << 40, MS + (1L << 40)), kept.get(key("r2")));
    assertEquals(Map.of(1L, MS + 1), kept.get(twoFamilies));
    store.close();
    UUID id = store.id();
    try (ArrivalStore again = open(100)) {
      assertEquals(kept, content());
      assertEquals(id, again.id());
      again.keep(request(key("r1"), 13));
      assertTrue(content().get(key("r1")).containsKey(13L));
    }
  }

  @Test
  void whatADiskHasLostIsNotThereForARequestThatWaitedForTheSame() throws IOException {
    AtomicInteger calls = new AtomicInteger();
    ArrivalFile file = new ArrivalFile(folder.resolve("1.log"), written -> {
      if (calls.getAndIncrement() == 0) {
        throw new IOException("the disk is gone");
      }
    });
    long end = file.append(request(key("r1"), 1));
    assertThrows(IOException.class, () -> file.force(end));
    assertThrows(IOException.class, () -> file.force(end));
    assertEquals(1, calls.get());
  }

  /** As without memory: the file lacks the key, and the same request, sent again, would name it by its number. */
  @Test
  void nothingIsKeptAfterARequestThatEndedHalfWay() throws IOException {
    try (ArrivalStore store = open(100)) {
      store.keep(request(key("r1"), 1));
      Arrivals unwritable = request(new ArrivalKey(null, "r2", List.of(A), List.of("f")), 1);
      assertThrows(IOException.class, () -> store.keep(unwritable));
      assertThrows(IOException.class, () -> store.keep(request(key("r3"), 1)));
    }
    assertEquals(Map.of(key("r1"), Map.of(1L, MS + 1)), content());
  }

  /** Else what is left of it would pass for all of it, as the set of a whole log. */
  @Test
  void aLogThatWasCutShortWhileItGrewBecomesNoSet() throws IOException {
    StorePosition acknowledged;
    try (ArrivalStore store = open(3)) {
      store.keep(request(key("r1"), 1));
      long first = Files.size(log());
      acknowledged = store.keep(request(key("r1"), 2, 3));
      try (RandomAccessFile file = new RandomAccessFile(log().toFile(), "rw")) {
        file.setLength(first);
      }
      assertThrows(IOException.class, () -> store.keep(request(key("r1"), 4)));
    }
    assertEquals(List.of(), files(".set"));
    try (ArrivalStore again = new ArrivalStore(folder, 3)) {
      assertThrows(IOException.class, () -> again.begin(acknowledged));
    }
  }

  @Test
  void fullLogsBecomeSetsOfTwoBytesAnEntryAndRepetitionsTakeNoRoom() throws IOException {
    Random random = new Random(1);
    long[] times = new long[10];
    long[] next = new long[10];
    int entries = 100_000;
    try (ArrivalStore store = open(entries)) {
      for (int i = 0; i < entries; i += 10) {
        Arrivals request = new Arrivals();
        for (int j = 0; j < 10; j++) {
          int region = random.nextInt(10);
          // Some sequence ids are of flushes and of local families, and some ten entries are written in a ms.
          next[region] += random.nextInt(20) == 0 ? 3 : 1;
          times[region] += random.nextInt(20);
          request.add(key("region" + region), next[region], MS + times[region]);
        }
        store.keep(request);
        store.keep(request);
      }
      store.keep(request(key("region0"), 1L << 30));
      assertEquals(10, content().size());
      assertEquals(entries + 1, content().values().stream().mapToInt(Map::size).sum());
    }
    long bytes = 0;
    for (Path set : files(".set")) {
      bytes += Files.size(set);
    }
    // The log holds every entry twice, in two sets of half of them each.
    assertEquals(2, files(".set").size());
    assertTrue(bytes < 2.1 * entries, bytes + " bytes");
  }

  @Test
  void aRecordThatWasNotWrittenWholeIsNoneAndTheRestStays() throws IOException {
    try (ArrivalStore store = open(100)) {
      store.keep(request(key("r1"), 1, 2));
      store.keep(request(key("r1"), 3, 4));
    }
    long whole = Files.size(log());
    for (long left = whole - 1; left > 0; left--) {
      Path copy = Files.copy(log(), folder.resolve("copy"), StandardCopyOption.REPLACE_EXISTING);
      try (RandomAccessFile file = new RandomAccessFile(copy.toFile(), "rw")) {
        file.setLength(left);
      }
      int read = ArrivalFile.read(copy).size();
      assertTrue(read == 2 || read == 0, left + " bytes: " + read);
      assertTrue(read == 2 || left < whole / 2 + 60, left + " bytes hold the first record");
      Files.delete(copy);
    }
    try (RandomAccessFile file = new RandomAccessFile(log().toFile(), "rw")) {
      file.setLength(whole - 1);
    }
    try (ArrivalStore store = open(100)) {
      assertEquals(List.of(1L, 2L), List.copyOf(content().get(key("r1")).keySet()));
      store.keep(request(key("r1"), 3, 4));
      assertEquals(4, content().get(key("r1")).size());
    }
  }

  @Test
  void aRecordThatWasDamagedAmongOthersIsNoEnd() throws IOException {
    try (ArrivalStore store = open(100)) {
      store.keep(request(key("r1"), 1));
      store.keep(request(key("r1"), 2));
    }
    try (RandomAccessFile file = new RandomAccessFile(log().toFile(), "rw")) {
      file.seek(12);
      file.write(0x55);
    }
    IOException error = assertThrows(IOException.class, () -> open(100));
    assertTrue(error.getMessage().contains("is damaged at byte 0"), error.getMessage());
  }

  @Test
  void aSetThatIsDamagedIsNotPrunedAway() throws IOException {
    try (ArrivalStore store = open(100)) {
      store.keep(request(key("r1"), 1));
    }
    open(100).close();
    Path set = files(".set").get(0);
    byte[] whole = Files.readAllBytes(set);
    for (byte[] damaged : List.of(Arrays.copyOf(whole, whole.length - 1), new byte[0])) {
      Files.write(set, damaged);
      try (ArrivalStore store = open(100)) {
        IOException error = assertThrows(IOException.class, () -> store.prune(settled(MS + 1_000, "r1")));
        assertTrue(error.getMessage().contains("1.set is damaged at byte 0"), error.getMessage());
      }
      assertEquals(List.of(), files(".runs"));
      assertTrue(Files.exists(set));
    }
  }

  @Test
  void aFolderHasOneWitness() throws IOException {
    try (ArrivalStore store = open(100)) {
      IOException error = assertThrows(IOException.class, () -> open(100));
      assertEquals("another witness uses the folder " + folder, error.getMessage());
      store.keep(request(key("r1"), 1));
    }
    open(100).close();
  }

  /** Within one process Java itself knows who has the lock; between two the system does. */
  @Test
  void aProcessThatCannotHaveItsFolderEndsWithOneLine() throws Exception {
    try (ArrivalStore store = open(100)) {
      store.keep(request(key("r1"), 1));
      assertEquals("another witness uses the folder " + folder, refusal(folder));
      store.keep(request(key("r1"), 2));
      assertEquals(range(1, 2), ids());
    }
    Path file = Files.createFile(folder.resolve("file"));
    assertEquals(file + " is no folder", refusal(file));
  }

  /** Returns why a witness ends, in a process of its own. It opens its folder before it asks ZooKeeper. */
  private static String refusal(Path folder) throws IOException, InterruptedException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    ProcessBuilder witness =
        new ProcessBuilder(
            java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", Witness.class.getName(),
            "localhost:1:/witness", "localhost", "1", folder.toString());
    witness.environment().put("CLASSPATH", System.getProperty("java.class.path"));
    Process process = witness.redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(2, process.waitFor(), said);
    List<String> lines = said.lines().filter(each -> each.startsWith("status-tool: ")).collect(Collectors.toList());
    String prefix = "status-tool: the witness ends: ";
    assertEquals(1, lines.size(), said);
    assertTrue(lines.get(0).startsWith(prefix), said);
    return lines.get(0).substring(prefix.length());
  }

  @Test
  void whatCannotBeKeptIsNotAcknowledgedAndNothingAfterIt() throws IOException {
    ArrivalStore store = open(1);
    store.keep(request(key("r1"), 1));
    Files.delete(log()); // no set can be made of it
    assertThrows(IOException.class, () -> store.keep(request(key("r1"), 2)));
    assertThrows(IOException.class, () -> store.keep(request(key("r1"), 3)));
  }

  @Test
  void handlersInFlightLoseNothingAcrossLogs() throws Exception {
    ExecutorService handlers = Executors.newFixedThreadPool(8);
    try (ArrivalStore store = open(50)) {
      List<Future<Void>> done = new ArrayList<>();
      for (int handler = 0; handler < 8; handler++) {
        ArrivalKey key = key("region" + handler);
        done.add(
            handlers.submit(
                () -> {
                  for (long sequenceId = 1; sequenceId <= 100; sequenceId++) {
                    store.keep(request(key, sequenceId));
                  }
                  return null;
                }));
      }
      for (Future<Void> each : done) {
        each.get();
      }
    } finally {
      handlers.shutdownNow();
    }
    List<Long> all = LongStream.rangeClosed(1, 100).boxed().collect(Collectors.toList());
    assertEquals(8, content().size());
    content().values().forEach(set -> assertEquals(all, List.copyOf(set.keySet())));
  }

  @Test
  void aFolderThatHasLessThanWasAcknowledgedIsRefusedAndStaysAsItIs() throws IOException {
    StorePosition first;
    StorePosition second;
    StorePosition third;
    Path backup;
    try (ArrivalStore store = open(2)) {
      first = store.keep(request(key("r1"), 1));
      backup = Files.copy(log(), folder.resolve("backup"));
      second = store.keep(request(key("r1"), 2));
      third = store.keep(request(key("r1"), 3));
    }
    assertTrue(first.compareTo(second) < 0 && second.compareTo(third) < 0);
    assertEquals(2, third.number);
    for (StorePosition acknowledged : List.of(first, second, third)) {
      try (ArrivalStore store = new ArrivalStore(folder, 2)) {
        assertTrue(store.reach().compareTo(third) >= 0);
        store.begin(acknowledged);
      }
    }
    files(".set").forEach(each -> each.toFile().delete());
    files(".log").forEach(each -> each.toFile().delete());
    Files.move(backup, folder.resolve("1.log"));
    for (StorePosition acknowledged : List.of(second, third)) {
      try (ArrivalStore store = new ArrivalStore(folder, 2)) {
        IOException error = assertThrows(IOException.class, () -> store.begin(acknowledged));
        assertTrue(error.getMessage().contains("restored from a backup"), error.getMessage());
        assertEquals(first, store.reach());
      }
    }
    try (ArrivalStore store = new ArrivalStore(folder, 2)) {
      store.begin(first);
    }
  }

  @Test
  void aSetThatIsMissingIsNoticed() throws IOException {
    StorePosition last;
    try (ArrivalStore store = open(1)) {
      store.keep(request(key("r1"), 1));
      store.keep(request(key("r1"), 2));
      last = store.keep(request(key("r1"), 3));
    }
    Files.delete(folder.resolve("1.set"));
    try (ArrivalStore store = new ArrivalStore(folder, 1)) {
      assertThrows(IOException.class, () -> store.begin(last));
    }
  }

  @Test
  void entriesOfALaterLifeOfARegionStayBesideThoseOfTheEarlierOne() throws IOException {
    try (ArrivalStore store = open(100)) {
      store.keep(request(key("r1"), 5));
      Arrivals again = new Arrivals();
      again.add(key("r1"), 5, MS + 100_000);
      store.keep(again);
      store.keep(again);
    }
    open(100).close();
    assertEquals(1, files(".set").size());
    assertEquals(2, ArrivalFile.read(files(".set").get(0)).size());
  }

  private static Settled settled(long untilMs, String... regions) {
    return Settled.of(untilMs + " " + A + " " + String.join(" ", regions));
  }

  private List<String> names() throws IOException {
    return files("").stream()
        .map(each -> each.getFileName().toString())
        .filter(each -> each.matches(".*\\.(log|set|runs|fresh)"))
        .collect(Collectors.toList());
  }

  /** What files of runs hold of a key: first and last sequence id, lowest and highest write time since {@link #MS}. */
  private List<List<Long>> runs(ArrivalKey key) throws IOException {
    List<List<Long>> found = new ArrayList<>();
    for (Path file : files(".runs")) {
      for (Run each : ArrivalFile.readRuns(file).byKey().getOrDefault(key, List.of())) {
        found.add(List.of(each.first, each.last, each.low - MS, each.high - MS));
      }
    }
    return found;
  }

  /** All sequence ids, as many times as they are there, of everything in the folder. */
  private List<Long> ids() throws IOException {
    List<Long> found = new ArrayList<>();
    for (Path file : files("")) {
      if (file.toString().matches(".*\\.(log|set|runs)")) {
        Arrivals all = file.toString().endsWith("runs") ? ArrivalFile.readRuns(file) : ArrivalFile.read(file);
        all.byKey().values().forEach(
            each -> each.forEach(run -> LongStream.rangeClosed(run.first, run.last).forEach(found::add)));
      }
    }
    found.sort(null);
    return found;
  }

  private static List<Long> range(long first, long last) {
    return LongStream.rangeClosed(first, last).boxed().collect(Collectors.toList());
  }

  @Test
  void whatIsSettledBecomesRunsAndNoSequenceIdGoes() throws IOException {
    ArrivalKey relayed = new ArrivalKey("ns:t", "r1", List.of(A, B), List.of("f"));
    try (ArrivalStore store = open(100)) {
      store.keep(request(key("r1"), 1, 2, 4, 3, 2, 7, 8));
      store.keep(request(key("r2"), 1, 2));
      store.keep(request(relayed, 5, 6));
      store.prune(settled(MS + 7, "r1", "r3")); // not all of the set
      assertEquals(List.of("1.set", "2.log"), names());
      store.prune(settled(MS + 8, "r1", "r3"));
      assertEquals(List.of(List.of(1L, 4L, 1L, 4L), List.of(7L, 8L, 7L, 8L)), runs(key("r1")));
      assertEquals(List.of(List.of(1L, 1L, 1L, 1L), List.of(2L, 2L, 2L, 2L)), runs(key("r2")));
      assertEquals(List.of(List.of(5L, 5L, 5L, 5L), List.of(6L, 6L, 6L, 6L)), runs(relayed));
      assertEquals(List.of("1-1.runs", "2.log"), names());
      store.prune(settled(MS + 9, "r1", "r2")); // nothing was sent since
      assertEquals(List.of("1-1.runs", "2.log"), names());
      store.keep(request(key("r1"), 3, 5, 6, 9)); // one of them again, and two that came late
      Arrivals again = new Arrivals();
      again.add(key("r3"), 2, MS + 100); // of a region that is not named
      store.keep(again);
      store.prune(settled(MS + 9, "r1", "r2"));
      assertEquals(List.of(List.of(1L, 9L, 1L, 9L)), runs(key("r1")));
      assertEquals(List.of(List.of(1L, 2L, 1L, 2L)), runs(key("r2")));
      assertEquals(List.of(List.of(2L, 2L, 100L, 100L)), runs(key("r3")));
      assertEquals(List.of("1-2.runs", "3.log"), names());
    }
  }

  @Test
  void aWitnessThatIsKilledWhileItPrunesHasEveryEntryAndGoesOn() throws IOException {
    StorePosition last;
    try (ArrivalStore store = open(2)) {
      store.keep(request(key("r1"), 1, 2));
      store.keep(request(key("r1"), 3, 4));
      store.prune(settled(MS + 4, "r1"));
      store.keep(request(key("r1"), 5, 6));
      last = store.keep(request(key("r1"), 7, 8));
    }
    Map<String, byte[]> before = bytes();
    try (ArrivalStore store = open(2)) {
      store.prune(settled(MS + 8, "r1"));
    }
    byte[] runs = Files.readAllBytes(folder.resolve("1-4.runs"));
    assertEquals(List.of("1-4.runs", "5.log"), names());
    List<String> inputs = before.keySet().stream().sorted().collect(Collectors.toList());
    assertEquals(List.of("1-2.runs", "3.set", "4.log"), inputs);
    int states = 0;
    for (int removed = 0; removed <= inputs.size(); removed++) {
      for (int written : new int[] {0, 1, runs.length / 2, runs.length}) {
        if (removed > 0 && written < runs.length) {
          continue; // nothing is removed before the new file is whole
        }
        for (Path file : files("")) {
          if (file.toString().matches(".*\\.(log|set|runs|fresh)")) {
            Files.delete(file);
          }
        }
        for (String name : inputs.subList(removed, inputs.size())) {
          Files.write(folder.resolve(name), before.get(name));
        }
        Files.write(folder.resolve(removed > 0 ? "1-4.runs" : "1-4.fresh"), Arrays.copyOf(runs, written));
        if (written == runs.length) {
          Files.write(folder.resolve("1-4.runs"), runs);
        }
        try (ArrivalStore store = new ArrivalStore(folder, 2)) {
          store.begin(last);
          assertEquals(range(1, 8), ids());
          store.keep(request(key("r1"), 9));
          store.prune(settled(MS + 8, "r1"));
          assertEquals(range(1, 9), ids());
          assertEquals(List.of("1-4.runs", "5.set", "6.log"), names());
          assertEquals(List.of(List.of(1L, 8L, 1L, 8L)), runs(key("r1")));
        }
        states++;
      }
    }
    assertEquals(4 + inputs.size(), states);
  }

  private Map<String, byte[]> bytes() throws IOException {
    Map<String, byte[]> found = new HashMap<>();
    for (String name : names()) {
      found.put(name, Files.readAllBytes(folder.resolve(name)));
    }
    return found;
  }

  @Test
  void pruningHidesNoFileThatIsMissing() throws IOException {
    StorePosition last;
    try (ArrivalStore store = open(1)) {
      for (long each = 1; each <= 4; each++) {
        store.keep(request(key("r1"), each));
      }
      Files.delete(folder.resolve("2.set"));
      IOException error = assertThrows(IOException.class, () -> store.prune(settled(MS + 9, "r1")));
      assertTrue(error.getMessage().contains("has no file with number 2"), error.getMessage());
      last = store.keep(request(key("r1"), 5));
    }
    try (ArrivalStore store = new ArrivalStore(folder, 1)) {
      assertThrows(IOException.class, () -> store.begin(last));
    }
  }

  @Test
  void anOlderStateOfAFolderThatWasPrunedIsRefused() throws IOException {
    StorePosition last;
    Map<String, byte[]> backup;
    try (ArrivalStore store = open(1)) {
      store.keep(request(key("r1"), 1));
      store.keep(request(key("r1"), 2));
      store.prune(settled(MS + 9, "r1"));
      backup = bytes();
      store.keep(request(key("r1"), 3));
      last = store.keep(request(key("r1"), 4));
      store.prune(settled(MS + 9, "r1"));
    }
    try (ArrivalStore store = new ArrivalStore(folder, 1)) {
      store.begin(last);
    }
    for (String name : names()) {
      Files.delete(folder.resolve(name));
    }
    for (Map.Entry<String, byte[]> file : backup.entrySet()) {
      Files.write(folder.resolve(file.getKey()), file.getValue());
    }
    try (ArrivalStore store = new ArrivalStore(folder, 1)) {
      IOException error = assertThrows(IOException.class, () -> store.begin(last));
      assertTrue(error.getMessage().contains("restored from a backup"), error.getMessage());
    }
  }

  @Test
  void requestsAreKeptWhileOthersArePruned() throws Exception {
    ExecutorService handlers = Executors.newFixedThreadPool(3);
    try (ArrivalStore store = open(20)) {
      List<Future<Void>> done = new ArrayList<>();
      for (int handler = 0; handler < 2; handler++) {
        ArrivalKey key = key("region" + handler);
        done.add(
            handlers.submit(
                () -> {
                  for (long sequenceId = 1; sequenceId <= 400; sequenceId++) {
                    store.keep(request(key, sequenceId));
                  }
                  return null;
                }));
      }
      Future<Void> pruned =
          handlers.submit(
              () -> {
                while (!done.stream().allMatch(Future::isDone)) {
                  store.prune(settled(MS + 1000, "region0"));
                  store.lengths();
                }
                return null;
              });
      for (Future<Void> each : done) {
        each.get();
      }
      pruned.get();
      store.keep(request(key("another"), 1));
      store.prune(settled(MS + 1000, "region0", "region1"));
    } finally {
      handlers.shutdownNow();
    }
    for (int region = 0; region < 2; region++) {
      assertEquals(List.of(List.of(1L, 400L, 1L, 400L)), runs(key("region" + region)));
    }
  }

  @Test
  void aLongFileOfRunsIsNotWrittenAgain() throws IOException {
    Random random = new Random(1);
    Arrivals sparse = new Arrivals();
    for (long each = 1; each <= 700_000; each++) {
      sparse.add(key("r1"), 3 * each + random.nextInt(2), MS + random.nextInt(1 << 20));
    }
    try (ArrivalStore store = open(1)) {
      store.keep(sparse);
      store.prune(settled(MS + (1 << 20), "r1"));
      byte[] runs = Files.readAllBytes(folder.resolve("1-1.runs"));
      for (long each = 1; each <= 3; each++) {
        store.keep(request(key("r2"), each));
        store.prune(settled(MS + 9, "r1", "r2"));
        assertEquals(List.of("1-1.runs", "2-" + (1 + each) + ".runs", (2 + each) + ".log"), names());
      }
      assertArrayEquals(runs, Files.readAllBytes(folder.resolve("1-1.runs")));
      assertEquals(700_000, runs(key("r1")).size());
      assertEquals(List.of(List.of(1L, 3L, 1L, 3L)), runs(key("r2")));
    }
  }

  /** The tool reads the same file; deflated bytes are not the same with every zlib. */
  @Test
  void theRunsAreThoseThatTheToolReads() throws IOException {
    Arrivals arrivals = request(key("r1"), 300, 1L << 40);
    arrivals.add(key("r1"), new Run(4, 12, MS + 4, MS + 12));
    arrivals.add(new ArrivalKey("ns:t", "r1", List.of(B, A), List.of("f", "g\u00e9")), 7, MS - 1000);
    Path file = folder.resolve("1-2.runs");
    try (ArrivalFile runs = new ArrivalFile(file)) {
      runs.appendRuns(arrivals.asSets());
    }
    Path golden = Path.of("src", "test", "resources", "witness-pruned", "1-2.runs");
    if (System.getenv("GOLDEN_WRITE") != null) {
      Files.copy(file, golden, StandardCopyOption.REPLACE_EXISTING);
    }
    List<List<Long>> written = runs(key("r1"));
    assertEquals(3, written.size());
    Files.copy(golden, file, StandardCopyOption.REPLACE_EXISTING);
    assertEquals(written, runs(key("r1")));
    assertEquals(List.of(4L, 12L, 4L, 12L), written.get(0));
  }

  /** The tool reads the same files ({@code tests/unit/test_arrivals.py}); with {@code GOLDEN_WRITE} they are written. */
  @Test
  void theFilesAreThoseThatTheToolReads() throws IOException {
    ArrivalKey relayed = new ArrivalKey("ns:t", "r1", List.of(B, A), List.of("f"));
    ArrivalKey families = new ArrivalKey("ns:t", "r1", List.of(A), List.of("f", "g\u00e9"));
    Path set = folder.resolve("1.set");
    try (ArrivalFile file = new ArrivalFile(set)) {
      Arrivals arrivals = request(key("r1"), 4, 5, 6, 9);
      arrivals.add(relayed, 7, MS - 1000);
      file.append(arrivals);
    }
    Path log = folder.resolve("2.log");
    try (ArrivalFile file = new ArrivalFile(log)) {
      file.append(request(key("r1"), 9, 12));
      file.append(request(families, 10));
      file.append(request(key("r1"), 300, 1L << 40));
    }
    for (Path file : List.of(set, log)) {
      Path golden = Path.of("src", "test", "resources", "witness", file.getFileName().toString());
      if (System.getenv("GOLDEN_WRITE") != null) {
        Files.copy(file, golden, StandardCopyOption.REPLACE_EXISTING);
      }
      assertArrayEquals(Files.readAllBytes(golden), Files.readAllBytes(file), golden.toString());
    }
  }
}
