package io.github.statustool.witness;

import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.UUID;

/**
 * Fills a witness's folder with entries as a master with some regions sends them, and prunes it in between as {@code
 * run -m} does: {@code fill FOLDER ENTRIES REGIONS PRUNE_EVERY FAMILIES}. {@code start FOLDER} opens it once more.
 * Prints lines of JSON.
 */
public final class WitnessGrowth {
  private static final int REQUEST_ENTRIES = 5_000;
  private static final int ENTRIES_A_SECOND = 10_000;
  /** As the tool has it (SETTLED_MS). */
  private static final long SETTLED_MS = 120_000;
  private static final long START_MS = 1_700_000_000_000L;
  private static final UUID SENDER = new UUID(1, 2);
  private static final int LOOKS = 10;

  private final ArrivalStore store;
  private final ArrivalKey[][] keys;
  private final long[] sequenceIds;
  private final Random random = new Random(1);

  private WitnessGrowth(ArrivalStore store, int regions, int families) {
    this.store = store;
    keys = new ArrivalKey[regions][families];
    sequenceIds = new long[regions];
    for (int region = 0; region < regions; region++) {
      for (int family = 0; family < families; family++) {
        String name = String.format("%032x", region);
        keys[region][family] = new ArrivalKey("load", name, List.of(SENDER), List.of("f" + family));
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    Path folder = Paths.get(arguments[1]);
    if (arguments[0].equals("start")) {
      start(folder);
      return;
    }
    try (ArrivalStore store = new ArrivalStore(folder, ArrivalStore.LOG_ENTRIES)) {
      store.clusterId(UUID.randomUUID());
      store.id();
      store.begin(StorePosition.START);
      new WitnessGrowth(store, Integer.parseInt(arguments[3]), Integer.parseInt(arguments[5]))
          .fill(Long.parseLong(arguments[2]), Long.parseLong(arguments[4]));
    }
  }

  private static void start(Path folder) throws Exception {
    long began = System.nanoTime();
    try (ArrivalStore store = new ArrivalStore(folder, ArrivalStore.LOG_ENTRIES)) {
      store.begin(store.reach());
    }
    System.out.printf("{\"start_s\": %.3f, \"heap_mib\": %d}%n", seconds(began), peakHeapMib());
  }

  private void fill(long entries, long pruneEvery) throws Exception {
    double keeping = 0;
    double pruning = 0;
    long largest = 0;
    long nextLook = entries / LOOKS;
    for (long sent = 0; sent < entries; ) {
      Arrivals request = request(sent, (int) Math.min(REQUEST_ENTRIES, entries - sent));
      long began = System.nanoTime();
      store.keep(request);
      keeping += seconds(began);
      sent += request.size();
      largest = Math.max(largest, bytes());
      if (pruneEvery > 0 && sent % pruneEvery < REQUEST_ENTRIES) {
        began = System.nanoTime();
        store.prune(Settled.of(settled(now(sent))));
        pruning += seconds(began);
      }
      if (sent >= nextLook) {
        nextLook += entries / LOOKS;
        System.out.printf(
            "{\"entries\": %d, \"bytes\": %d, \"largest\": %d, \"heap_mib\": %d, \"keep_s\": %.3f,"
                + " \"prune_s\": %.3f}%n",
            sent, bytes(), largest, peakHeapMib(), keeping, pruning);
      }
    }
  }

  /** Consecutive sequence ids but for those that HBase's own markers take; write times as the clock goes. */
  private Arrivals request(long sent, int count) {
    Arrivals request = new Arrivals();
    for (int each = 0; each < count; each++) {
      int region = random.nextInt(keys.length);
      sequenceIds[region] += random.nextInt(100_000) == 0 ? 3 : 1;
      ArrivalKey[] families = keys[region];
      request.add(families[random.nextInt(families.length)], sequenceIds[region], now(sent + each));
    }
    return request;
  }

  private static long now(long sent) {
    return START_MS + sent * 1000 / ENTRIES_A_SECOND;
  }

  private String settled(long now) {
    List<String> words = new ArrayList<>(List.of(Long.toString(now - SETTLED_MS), SENDER.toString()));
    for (ArrivalKey[] region : keys) {
      words.add(region[0].region);
    }
    return String.join(" ", words);
  }

  private long bytes() throws Exception {
    return store.lengths().values().stream().mapToLong(Long::longValue).sum();
  }

  private static long peakHeapMib() {
    return ManagementFactory.getMemoryPoolMXBeans().stream()
            .filter(pool -> pool.getType() == MemoryType.HEAP)
            .map(MemoryPoolMXBean::getPeakUsage)
            .mapToLong(usage -> usage.getUsed())
            .sum()
        >> 20;
  }

  private static double seconds(long began) {
    return (System.nanoTime() - began) / 1e9;
  }
}
