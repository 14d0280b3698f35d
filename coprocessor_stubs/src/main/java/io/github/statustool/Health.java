package io.github.statustool;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.slf4j.Logger;

/** What went wrong, counted; and a log that says so once a minute, not once an entry. */
final class Health {
  private static final long QUIET_MS = 60_000;

  private volatile boolean sinkHook = true;
  private volatile String settings;
  private final AtomicLong errors = new AtomicLong();
  private final AtomicLong lastError = new AtomicLong();
  private final AtomicLong clockBack = new AtomicLong();
  private final AtomicLong failedWrites = new AtomicLong();
  private final AtomicLong nextErrorLog = new AtomicLong();
  private final AtomicLong nextWriteLog = new AtomicLong();
  private final Logger log;

  /** A server that starts before the master cannot write yet, which is nothing to warn of in its first minute. */
  Health(Logger log) {
    this.log = log;
    this.nextWriteLog.set(System.currentTimeMillis() + QUIET_MS);
  }

  /** A hook failed: an entry may have gone unseen. */
  void error(String where, Throwable cause) {
    lastError.accumulateAndGet(EnvironmentEdgeManager.currentTime(), Math::max);
    errors.incrementAndGet();
    if (due(nextErrorLog)) {
      log.warn("status-tool: {} failed; what it should have recorded will be reported as unverifiable", where, cause);
    }
  }

  /** The state table could not be written; what was to be written is kept. */
  void failedWrite(String what, Throwable cause) {
    failedWrites.incrementAndGet();
    if (due(nextWriteLog)) {
      log.warn("status-tool: {} not possible now, will be tried again: {}", what, firstLine(cause));
    }
  }

  /** @param from the latest time that the clock may have told before */
  void clockWasSetBack(long from) {
    if (clockBack.getAndAccumulate(from, Math::max) < from) {
      log.warn("status-tool: this server's clock was set back, from {} or before; write times up to then tell nothing of"
          + " when an entry was appended", from);
    }
  }

  /** This HBase does not tell what its replication sink has applied (before HBASE-27529): nothing can be recorded. */
  void sinkHookIsMissing() {
    sinkHook = false;
    log.error("status-tool: this HBase has no hook postReplicationSinkBatchMutate (HBASE-27529), so what replication"
        + " applies here cannot be recorded; upgrade to HBase 2.5.4 or later");
  }

  /** @param json of {@link ServerSettings}, or null */
  void serverSettings(String json) {
    settings = json;
  }

  long errors() {
    return errors.get();
  }

  /** @param peers a JSON object, or null for none */
  String json(long pending, String peers) {
    return "{\"failed_writes\":" + failedWrites.get() + ",\"pending\":" + pending + ",\"errors\":" + errors.get()
        + optional("last_error_ms", lastError.get()) + optional("clock_back_ms", clockBack.get())
        + (sinkHook ? "" : ",\"sink_hook\":false") + object("peers", peers) + object("settings", settings) + "}";
  }

  private static String object(String name, String json) {
    return json == null ? "" : ",\"" + name + "\":" + json;
  }

  private static String optional(String name, long time) {
    return time > 0 ? ",\"" + name + "\":" + time : "";
  }

  /** The client's exceptions list every attempt, on a line each. */
  private static String firstLine(Throwable cause) {
    return String.valueOf(cause).split("\n", 2)[0];
  }

  private static boolean due(AtomicLong next) {
    long now = System.currentTimeMillis();
    long at = next.get();
    return now >= at && next.compareAndSet(at, now + QUIET_MS);
  }
}
