package io.github.statustool.state;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongBinaryOperator;
import java.util.function.Supplier;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.slf4j.Logger;

/** Counts errors, and logs each kind at most once a minute. */
public final class Health {
  private static final long QUIET_MS = 60_000;
  /** Linked beforehand, so that counting an error allocates nothing. */
  private static final LongBinaryOperator LATEST = Math::max;

  private volatile boolean sinkHook = true;
  private volatile Supplier<String> settings = () -> null;
  private final AtomicLong errors = new AtomicLong();
  private final AtomicLong lastError = new AtomicLong();
  private final AtomicLong clockBack = new AtomicLong();
  private final AtomicLong clockLow = new AtomicLong(Long.MAX_VALUE);
  private final AtomicLong failedWrites = new AtomicLong();
  private final AtomicLong nextErrorLog = new AtomicLong();
  private final AtomicLong nextWriteLog = new AtomicLong();
  private final Logger log;

  public Health(Logger log) {
    this.log = log;
    // Not in the first minute: a server that starts before the HBase master cannot write yet.
    this.nextWriteLog.set(System.currentTimeMillis() + QUIET_MS);
  }

  /** Counts an error in a hook: an entry may have gone unrecorded. Never throws: hooks call it in their last catch. */
  public void error(String where, Throwable cause) {
    errors.incrementAndGet();
    lastError.accumulateAndGet(EnvironmentEdgeManager.currentTime(), LATEST);
    try {
      if (due(nextErrorLog)) {
        log.warn("status-tool: {} failed; entries that it should have recorded will be reported as unverifiable", where,
            cause);
      }
    } catch (Throwable again) {
      // Without memory even the log may fail. It has been counted by then.
    }
  }

  /** Counts a failed write. The data is kept and written later. Never throws. */
  public void failedWrite(String what, Throwable cause) {
    failedWrites.incrementAndGet();
    try {
      if (due(nextWriteLog)) {
        log.warn("status-tool: {} failed, will retry: {}", what, firstLine(cause));
      }
    } catch (Throwable again) {
      // As above.
    }
  }

  /**
   * @param from an upper bound of what the clock showed before
   * @param to what it shows now
   */
  public void clockWasSetBack(long from, long to) {
    clockLow.accumulateAndGet(to, Math::min);
    if (clockBack.getAndAccumulate(from, Math::max) < from) {
      log.warn("status-tool: the clock of this server was set back, from {} or earlier; write times up to then do not"
          + " show when an entry was appended", from);
    }
  }

  /** Records that this HBase version lacks the sink hook (HBASE-27529), so that nothing can be recorded. */
  public void sinkHookIsMissing() {
    sinkHook = false;
    log.error("status-tool: this HBase has no hook postReplicationSinkBatchMutate (HBASE-27529), so what replication"
        + " applies here cannot be recorded; upgrade to HBase 2.5.4 or later");
  }

  /** @param json {@code ServerSettings.json} */
  public void serverSettings(Supplier<String> json) {
    settings = json;
  }

  public long errors() {
    return errors.get();
  }

  /** @param peers a JSON object, or null */
  public String json(long pending, String peers) {
    return "{\"failed_writes\":" + failedWrites.get() + ",\"pending\":" + pending + ",\"errors\":" + errors.get()
        + optional("last_error_ms", lastError.get()) + optional("clock_back_ms", clockBack.get())
        + (clockBack.get() > 0 ? optional("clock_low_ms", clockLow.get()) : "")
        + (sinkHook ? "" : ",\"sink_hook\":false") + object("peers", peers) + object("settings", settings.get()) + "}";
  }

  private static String object(String name, String json) {
    return json == null ? "" : ",\"" + name + "\":" + json;
  }

  private static String optional(String name, long time) {
    return time > 0 ? ",\"" + name + "\":" + time : "";
  }

  /** Returns the first line of an exception; the client's exceptions list every attempt, one per line. */
  private static String firstLine(Throwable cause) {
    return String.valueOf(cause).split("\n", 2)[0];
  }

  private static boolean due(AtomicLong next) {
    long now = System.currentTimeMillis();
    long at = next.get();
    return now >= at && next.compareAndSet(at, now + QUIET_MS);
  }
}
