package io.github.statustool.digests;

import io.github.statustool.state.Ids;
import io.github.statustool.state.Settings;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.hbase.regionserver.Region;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers requests for row digests of this server's regions, on a thread of its own that sleeps until the doorbell
 * rings. Hooks and the recorder never wait for it, and an error costs a slice at most.
 */
public final class DigestWorker {
  private static final Logger LOG = LoggerFactory.getLogger(DigestWorker.class);
  private static final int MAX_JOBS = 4;
  private static final long IDLE_PARK_MS = 500;
  private static final long FAILED_PARK_MS = 1_000;

  private final Settings settings;
  private final AtomicReference<byte[]> rung = new AtomicReference<>();
  private final List<DigestJob> jobs = new ArrayList<>();
  private volatile DigestServer server;
  private volatile Thread thread;
  private volatile boolean stopped;
  private volatile byte[] lastRing;
  private RequestTable table;
  private DigestPace pace;
  private long paceRate;

  public DigestWorker(Settings settings) {
    this.settings = settings;
  }

  /** Starts answering for this server, unless the configuration disables it. */
  public synchronized void start(DigestServer of) {
    if (!settings.digests || thread != null) {
      return;
    }
    server = of;
    Thread started = new Thread(this::run, "status-tool-digests");
    started.setDaemon(true);
    started.setPriority(Thread.MIN_PRIORITY);
    thread = started;
    started.start();
  }

  /** Stops, and drops all requests. */
  public void stop() {
    stopped = true;
    LockSupport.unpark(thread);
  }

  /**
   * @param doorbell id of a request (16 bytes) and a number that changes with each ring; ignored if null or unchanged
   * @return whether it has rung anew
   */
  public boolean ring(byte[] doorbell) {
    if (doorbell == null || thread == null || Arrays.equals(doorbell, lastRing)) {
      return false;
    }
    lastRing = doorbell;
    rung.set(doorbell);
    LockSupport.unpark(thread);
    return true;
  }

  private boolean isStopping() {
    return stopped || server.isStopping();
  }

  private void run() {
    while (!isStopping()) {
      long pause;
      try {
        pause = tick();
      } catch (Throwable t) {
        LOG.info("status-tool: row digests are not possible now: {}", String.valueOf(t).split("\n", 2)[0]);
        LOG.debug("status-tool: row digests", t);
        disconnect();
        pause = FAILED_PARK_MS;
      }
      if (pause > 0) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(pause));
      }
    }
    disconnect();
  }

  /** Digests one slice of each request. Returns how long to sleep, in milliseconds. */
  private long tick() throws IOException {
    accept(rung.getAndSet(null));
    jobs.removeIf(DigestJob::isOver);
    if (jobs.isEmpty()) {
      disconnect();
      // A ring after this look is not missed: it unparks the thread, so that the next park returns at once.
      return rung.get() == null ? Long.MAX_VALUE / 1_000_000 : 0;
    }
    boolean works = false;
    for (DigestJob job : jobs) {
      job.refresh(connected(), now());
      job.step(this::scan);
      job.send(connected(), now());
      works |= job.hasWork();
    }
    return works || rung.get() != null ? 0 : IDLE_PARK_MS;
  }

  /** Accepts a request unless the server works on the maximum number already; the tool rings again in that case. */
  private void accept(byte[] doorbell) {
    String name = server.name();
    if (doorbell == null || doorbell.length < SipHash128.KEY_BYTES || name == null) {
      return;
    }
    byte[] id = Arrays.copyOf(doorbell, SipHash128.KEY_BYTES);
    for (DigestJob job : jobs) {
      if (Arrays.equals(job.id, id)) {
        job.refreshNow(now());
        return;
      }
    }
    if (jobs.size() < MAX_JOBS) {
      jobs.add(new DigestJob(id, server, Ids.hex(Ids.origin(name)), now()));
    }
  }

  private DigestScan.Slice scan(Region region, DigestRequest.TableRequest request, long asked,
      DigestRequest.Range range) throws IOException {
    long rate = asked > 0 ? Math.min(asked, settings.digestRate) : settings.digestRate;
    if (pace == null || paceRate != rate) {
      pace = new DigestPace(rate, LockSupport::parkNanos);
      paceRate = rate;
    }
    if (request.isSample()) {
      byte[] start = RandomRow.in(region, range, ThreadLocalRandom.current());
      return new DigestScan(region, request, pace, this::isStopping, DigestScan.SAMPLE_BYTES).read(start, range.stop);
    }
    return new DigestScan(region, request, pace, this::isStopping, DigestScan.MAX_BYTES).read(range.start, range.stop);
  }

  private RequestTable connected() throws IOException {
    if (table == null) {
      table = server.connect(settings);
    }
    return table;
  }

  private void disconnect() {
    if (table != null) {
      try {
        table.close();
      } catch (IOException e) {
        LOG.debug("status-tool: closing", e);
      }
      table = null;
    }
  }

  private static long now() {
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
  }
}
