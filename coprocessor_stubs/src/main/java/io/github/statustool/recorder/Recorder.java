package io.github.statustool.recorder;

import io.github.statustool.content.TableEvents;
import io.github.statustool.content.TenureJoiner;
import io.github.statustool.digests.DigestWorker;
import io.github.statustool.server.WalSyncer;
import io.github.statustool.state.Alarm;
import io.github.statustool.state.Change;
import io.github.statustool.state.Health;
import io.github.statustool.state.Settings;
import io.github.statustool.state.Spool;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.TableMark;
import io.github.statustool.streams.Compactor;
import io.github.statustool.streams.ObservedState;
import io.github.statustool.streams.SegmentSpooler;
import io.github.statustool.streams.SinkBatch;
import io.github.statustool.streams.WriteThrough;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes what the hooks have observed to the state table, off their threads: polls the barrier, flushes periodically,
 * and writes the final rows of servers that stop. There is one per cluster and JVM, shared by all trackers (see {@link
 * SharedRecorders}) and driven by its {@link RecorderThread}, which calls {@link #tick}.
 */
public final class Recorder {
  private static final Logger LOG = LoggerFactory.getLogger(Recorder.class);
  private static final long FIRST_BACKOFF_MS = 500;
  private static final long LAST_BACKOFF_MS = 5_000;
  // A server without a tracker that lives for less than this may go unseen: its queue and archived WALs tell of it.
  private static final long LIVE_CHECK_MS = 10_000;
  /** A run that has just put a token or rung waits for more than one answer, so the next is not a whole poll away. */
  private static final long IN_USE_MS = 5_000;
  private static final long IN_USE_POLL_MS = 200;

  /** Connects to the cluster; called until it succeeds. */
  public interface Connector {
    StateStore connect() throws IOException;
  }

  /** Work that may fail. */
  private interface Task {
    void run() throws IOException;
  }

  private final Settings settings;
  private final LongSupplier clock;
  private final Connector connector;
  private final Spool spool;
  private final SpoolDrainer drainer;
  private final Health health = new Health(LOG);
  private final ObservedState observed;
  private final ServerRoles roles;
  private final Barrier barrier;
  private final Sweep sweep;
  private final ClockWatch clockWatch;
  private final Flusher flusher;
  private final Compactor compactor;
  private final TenureJoiner joiner;
  private final WriteThrough writeThrough;
  private final SegmentSpooler spooler;
  private final FactSpooler factSpooler;
  private final DigestWorker digests;
  private final ThreadLocal<SinkBatch> batches = ThreadLocal.withInitial(this::newBatch);
  private final TableMark mark;
  private final Alarm nextTry;
  private final Alarm nextFlush;
  private final Alarm nextSweep;
  private final Alarm nextLiveCheck;
  private final Alarm endOfUse;
  private volatile StateStore store;
  private byte[] newestToken;
  private boolean tableKnown;
  /**
   * True while a region of the state table is open here whose rows expire, or that a crash would lose. Until it is set
   * right, and once more then, the table counts as one that has lost rows.
   */
  private boolean isExpiring;
  private boolean hasExpired;
  private Set<Character> sweptAs = Set.of();
  private long backoff = FIRST_BACKOFF_MS;

  /** Uses the clock as a monotonic one, too, and copies nothing to the spool. */
  public Recorder(Settings settings, Connector connector, Spool spool, LongSupplier clock) {
    this(settings, connector, spool, clock, () -> TimeUnit.MILLISECONDS.toNanos(clock.getAsLong()),
        (name, live) -> false, copies -> { }, Runnable::run);
  }

  /**
   * @param nanos a monotonic clock, such as System.nanoTime
   * @param segmentCopies runs the copying of segments to the spool, which lasts as long as some are pending
   * @param files runs what reads or writes the file with the state table's mark, and what spools facts or reads the spool
   */
  public Recorder(Settings settings, Connector connector, Spool spool, LongSupplier clock, LongSupplier nanos,
      Sweep.Traces traces, Executor segmentCopies, Executor files) {
    this.settings = settings;
    this.clock = clock;
    this.connector = connector;
    this.spool = spool;
    this.observed = new ObservedState(health, clock);
    this.drainer = new SpoolDrainer(spool, health, files);
    this.roles = new ServerRoles(clock);
    observed.content.findFiles(roles::filesOf);
    this.barrier = new Barrier(clock);
    this.sweep = new Sweep(settings, clock, traces);
    this.clockWatch = new ClockWatch(clock, nanos, health);
    this.mark = new TableMark(spool, files, health, clock);
    this.flusher = new Flusher(observed, health, clock, new WalSyncer(settings.operationTimeout), roles, clockWatch,
        mark);
    this.compactor = new Compactor(observed.applied, settings.operationTimeout);
    this.joiner = new TenureJoiner(observed.content, observed.facts, clock, settings.operationTimeout);
    this.spooler = new SegmentSpooler(spool, observed.applied, health, clock, roles::anyOrigin,
        segmentCopies, settings.writeThroughWait);
    this.writeThrough = new WriteThrough(() -> store, observed.applied, health, settings.writeThroughWait,
        spooler);
    this.factSpooler = new FactSpooler(spool, health, clock, roles::anyOrigin, files);
    this.digests = new DigestWorker(settings);
    this.nextTry = new Alarm(clock);
    this.nextFlush = new Alarm(clock);
    this.nextSweep = new Alarm(clock);
    this.nextLiveCheck = new Alarm(clock);
    this.endOfUse = new Alarm(clock);
    this.nextFlush.set(settings.updateDelay);
  }

  private SinkBatch newBatch() {
    return new SinkBatch(settings.unstampedEntries, settings.allEntries);
  }

  public Settings settings() {
    return settings;
  }

  public ObservedState observed() {
    return observed;
  }

  public Health health() {
    return health;
  }

  public ServerRoles roles() {
    return roles;
  }

  public WriteThrough writeThrough() {
    return writeThrough;
  }

  /**
   * Returns the batch of the request that the calling thread handles. It belongs to no tracker: HBase's master branch
   * loads coprocessors again when their list changes, and its replication sink still calls the earlier instance.
   */
  public SinkBatch sinkBatch() {
    return batches.get();
  }

  public DigestWorker digests() {
    return digests;
  }

  /**
   * Runs one iteration. After a failure, the next attempts wait for a pause that grows up to five seconds: region
   * servers that cannot reach the state table must not all retry every poll, but once it is back, a barrier must not
   * wait for long.
   */
  public void tick() {
    clockWatch.check();
    roles.refresh();
    observed.content.readMarkers();
    // After the markers: the ledger can note what a table keeps only for a region whose opening it has read.
    lookAtRegions();
    roles.checkPeers();
    roles.checkWals();
    // Before the pause after a failure: a JVM that shuts down waits only so long for the final rows.
    endRoles();
    List<ServerRole> running = roles.running();
    if (running.isEmpty() || !nextTry.isDue()) {
      return;
    }
    try {
      round(connected(), running);
      backoff = FIRST_BACKOFF_MS;
    } catch (IOException e) {
      postpone(e);
    } catch (RuntimeException e) {
      health.error("a round of the recorder", e);
      postpone(new IOException(e)); // HBase's client throws some at once, as for a cell that is too large
    }
  }

  /** Shows the open regions to the table events and to the content ledger. */
  private void lookAtRegions() {
    if (!roles.canListRegions()) {
      return;
    }
    try {
      List<TableEvents.OpenRegion> open = roles.openRegions();
      observed.tableEvents.regions(open);
      observed.content.look(open);
      isExpiring = open.stream().anyMatch(region -> region.loses(settings.table.getNameAsString()));
    // Counted, and nothing else stops: heads and segments are recorded without these looks.
    } catch (RuntimeException e) {
      health.error("looking at the open regions", e);
    }
  }

  /** Milliseconds from one {@link #tick} to the next. */
  long pause() {
    return endOfUse.isDue() ? settings.barrierPoll : Math.min(settings.barrierPoll, IN_USE_POLL_MS);
  }

  private void postpone(IOException cause) {
    tableKnown = false;
    nextTry.set(backoff);
    backoff = Math.min(LAST_BACKOFF_MS, 2 * backoff);
    health.failedWrite("using the state table " + settings.table, cause);
    // In a start of the cluster, which is over by then, all regions are opened before the state table.
    boolean isLasting = backoff == LAST_BACKOFF_MS;
    factSpooler.copy(isLasting ? flusher.losable() : Change.rows(observed.factChanges()));
  }

  /** Returns the connection, which is kept after failures. */
  private StateStore connected() throws IOException {
    if (store == null) {
      store = connector.connect();
    }
    // After each failure: somebody may have dropped the table.
    if (!tableKnown) {
      store.ensureTable();
      tableKnown = true;
    }
    return store;
  }

  private void round(StateStore table, List<ServerRole> running) throws IOException {
    // First: a server whose row says that it ended counts as settled without an echo, whatever it appends now.
    reopen(table, running);
    // Before the mark is compared, which a slow file system may hold up: until then the server would look untracked.
    flusher.announce(table, running);
    TableMark.Finding wentBack = () -> flusher.wentBack(table, running);
    // Nothing is echoed before: after a restart of all servers, the mark alone shows that the table went back.
    if (!mark.compare(table, wentBack)) {
      return;
    }
    sweep.begin(table, roles.kinds());
    Barrier.Echo token = barrier.read(table, flusher.lastEcho());
    if (token != null) {
      lookAtRegions(); // again: the echo says that what had happened before the token was seen
    }
    // Before the flush that echoes the token: what the region may have lost is in the table again when the echo is.
    if (barrier.takeReopened()) {
      observed.forgetFlushes();
    }
    if ((isExpiring || hasExpired) && (token != null || isFlushDue())) {
      flusher.wentBack(table, running);
      hasExpired = isExpiring;
    }
    // Not ||: both remember what they were shown.
    if (digests.ring(barrier.doorbell()) | isNew(token)) {
      endOfUse.set(IN_USE_MS);
      attempt("describing the tables", () -> barrier.describeTables(table)); // heads do not wait for an HBase master
    }
    joiner.noteReturns(table);
    if (token != null || isFlushDue()) {
      flush(table, running, token);
    } else {
      flusher.writeUrgent(table, running);
    }
    maintain(table, wentBack);
  }

  private boolean isNew(Barrier.Echo token) {
    if (token == null || Arrays.equals(token.token, newestToken)) {
      return false;
    }
    newestToken = token.token;
    return true;
  }

  /**
   * Runs maintenance. Each task may fail without affecting the others, for example because no HBase master is active.
   */
  private void maintain(StateStore table, TableMark.Finding wentBack) {
    // Once more in each round: when the token came, there may have been no active HBase master.
    attempt("describing the tables", () -> barrier.describeTables(table));
    attempt("raising the mark of the state table", () -> mark.raise(table, wentBack));
    attempt("compacting rows of the state table", () -> compactor.step(table, clock.getAsLong()));
    attempt("joining rows of the content ledger", () -> joiner.step(table));
    attempt("listing the live region servers", () -> recordLive(table));
    attempt("sweeping the state table", () -> sweep(table));
  }

  private void attempt(String what, Task task) {
    try {
      task.run();
    } catch (IOException | RuntimeException e) {
      health.failedWrite(what, e);
    }
  }

  private void recordLive(StateStore table) throws IOException {
    if (nextLiveCheck.isDue()) {
      nextLiveCheck.set(LIVE_CHECK_MS);
      observed.applied.forgetIdle(clock.getAsLong());
      sweep.recordLive(table);
    }
  }

  /** Sweeps periodically, and at once when a role appears, as the first WAL does: now its coverage is kept. */
  private void sweep(StateStore table) throws IOException {
    if (nextSweep.isDue() || !sweptAs.equals(roles.kinds())) {
      sweptAs = roles.kinds();
      nextSweep.set(LAST_BACKOFF_MS); // if the sweep fails, it is tried again that soon
      sweep.run(table, sweptAs);
      nextSweep.set(settings.sweepPeriod);
    }
  }

  /** Returns true if a flush is due. */
  private boolean isFlushDue() {
    // Segments that neither spool nor table has, and changed peers, do not wait for the period: a crash loses them.
    return nextFlush.isDue() || observed.applied.hasUncopied() || !roles.peers().equals(flusher.lastPeers());
  }

  private void flush(StateStore table, List<ServerRole> running, Barrier.Echo token) throws IOException {
    flusher.flush(table, running, token);
    writeThrough.flushSucceeded();
    spooler.flushSucceeded();
    nextFlush.set(settings.updatePeriod);
    // By lot: it takes one server to read the spool. After a flush, because the table takes rows now.
    if (sweep.isDrawn()) {
      drainer.drainLater(table);
    }
  }

  private void reopen(StateStore table, List<ServerRole> running) throws IOException {
    for (ServerRole role : running) {
      if (role.isEnded()) {
        flusher.reopen(table, role, settings.operationTimeout);
      }
    }
  }

  /** Writes the final rows of servers that have stopped, to the table or else to the spool. */
  private void endRoles() {
    List<ServerRole> over = roles.over();
    boolean settled = over.stream().allMatch(ServerRole::isEnded);
    // Once more after the last server has ended: other threads may have added changes since its final row.
    if (over.isEmpty() || (settled && !(isEnded() && flusher.hasChanges()))) {
      return;
    }
    try {
      flusher.end(connected(), over);
      LOG.info("status-tool: final flush of {} done", over);
    } catch (IOException | RuntimeException e) {
      health.failedWrite("the final flush of " + over, e);
      spool(over, true);
    }
  }

  private void spool(List<ServerRole> of, boolean end) {
    try {
      flusher.spool(spool, of, end);
      LOG.info("status-tool: state of {} spooled below {}", of, settings.spoolDir());
    } catch (IOException | RuntimeException e) {
      health.failedWrite("spooling the state of " + of, e);
    }
  }

  /** Returns true if all servers have their final rows. */
  boolean isEnded() {
    return roles.refresh().stream().allMatch(ServerRole::isEnded);
  }

  /** Returns true if waiting for a clean end is useless, because the region server threads have ended. */
  boolean cannotEndCleanly() {
    return roles.serversAreGone() && !roles.running().isEmpty();
  }

  /** Writes what is known of servers that did not stop cleanly in time; their rows do not claim a clean end. */
  void saveUnfinished() {
    List<ServerRole> running = roles.running();
    try {
      flusher.flush(connected(), running, null);
    } catch (IOException | RuntimeException e) {
      health.failedWrite("the last flush", e);
      spool(running, false);
    }
  }
}
