package io.github.statustool.digests;

import io.github.statustool.digests.DigestTable.AnswerRow;
import io.github.statustool.digests.DigestTable.PageRow;
import io.github.statustool.digests.DigestTable.ProgressRow;
import io.github.statustool.digests.DigestTable.RequestRow;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StoredRow;
import io.github.statustool.state.TrackerVersion;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * One request as this server processes it: reads its pages one after another, digests slice by slice, and writes
 * answers. Memory is bounded by one page and the answers of one slice.
 */
final class DigestJob {
  private static final long REFRESH_MS = 2_000;
  private static final long PROGRESS_MS = 5_000;
  private static final long ABANDONED_MS = 30_000;
  private static final long ANSWER_MS = 500;
  private static final int ANSWER_BYTES = 256 << 10;

  final byte[] id;
  private final DigestServer server;
  private final String origin;
  private final Deque<DigestRequest.Range> ranges = new ArrayDeque<>();
  private final List<DigestAnswer> answers = new ArrayList<>();
  private DigestRequest request;
  private long nextPage;
  /** Greater than the numbers that an earlier job used for the same request. */
  private long nextAnswer = System.currentTimeMillis() * 1_000;
  private byte[] heartbeat;
  private long aliveAt;
  private long refreshAt;
  private long progressAt;
  private long answerAt;
  private int unsent;
  private boolean over;

  /** @param now milliseconds of a monotonic clock */
  DigestJob(byte[] id, DigestServer server, String origin, long now) {
    this.id = id;
    this.server = server;
    this.origin = origin;
    this.aliveAt = now;
    this.refreshAt = now;
    this.progressAt = now;
  }

  boolean isOver() {
    return over;
  }

  boolean hasWork() {
    return !ranges.isEmpty() || !answers.isEmpty();
  }

  /** Reads the request again at the next {@link #refresh}: the doorbell has rung. */
  void refreshNow(long now) {
    refreshAt = now;
  }

  /** Reads the request and its next page, and reports progress. */
  void refresh(RequestTable table, long now) throws IOException {
    if (over || now < refreshAt) {
      return;
    }
    // Unless there is a new heartbeat: slices of other requests may have taken that long since the last look.
    over = now - aliveAt > ABANDONED_MS;
    StoredRow row = table.get(key(RequestRow.TYPE, ""));
    byte[] requested = row.value(RequestRow.REQUEST);
    if (requested == null || row.value(RequestRow.WITHDRAWN) != null) {
      over = true;
      return;
    }
    if (!Arrays.equals(heartbeat, row.value(RequestRow.HEARTBEAT))) {
      heartbeat = row.value(RequestRow.HEARTBEAT);
      aliveAt = now;
      over = false;
    }
    if (request == null) {
      request = parsed(requested);
    }
    if (over) {
      return;
    }
    readPage(table);
    refreshAt = now + REFRESH_MS;
    if (now >= progressAt) {
      table.put(List.of(progress()));
      progressAt = now + PROGRESS_MS;
    }
  }

  /** Ends the job if the request cannot be parsed: it would not parse later either. */
  private DigestRequest parsed(byte[] requested) {
    try {
      return DigestRequest.parse(requested);
    } catch (IOException e) {
      over = true;
      return null;
    }
  }

  private void readPage(RequestTable table) throws IOException {
    if (!ranges.isEmpty()) {
      return;
    }
    String prefix = PageRow.TYPE + origin + Bytes.toHex(id);
    StoredRow page = table.first(Bytes.toBytes(prefix + number(nextPage)), Bytes.toBytes(prefix + "g"));
    if (page != null) {
      nextPage = 1 + Long.parseLong(new String(page.key, prefix.length(), page.key.length - prefix.length(),
          StandardCharsets.US_ASCII), 16);
      byte[] value = page.value(PageRow.RANGES);
      if (value != null) {
        addRanges(value);
      }
    }
  }

  private void addRanges(byte[] page) {
    try {
      ranges.addAll(DigestRequest.parsePage(page));
    } catch (IOException e) {
      over = true;
    }
  }

  private StateRow progress() {
    return new StateRow(key(ProgressRow.TYPE, origin))
        .add(ProgressRow.VERSION, Bytes.toBytes(TrackerVersion.get()), StateRow.SERVER_TIME);
  }

  private byte[] key(char type, String rest) {
    return Bytes.toBytes(type + Bytes.toHex(id) + rest);
  }

  private static String number(long value) {
    return Ids.hex(value).substring(Integer.BYTES * 2);
  }

  /** Digests one slice of the next range, if any. */
  void step(DigestScanner scanner) {
    DigestRequest.Range range = ranges.poll();
    if (range == null) {
      return;
    }
    DigestAnswer answer;
    try {
      DigestScan.Slice slice = digest(range, scanner);
      answer = DigestAnswer.slice(range, slice.readPoint, slice.buckets, slice.end);
      if (!slice.reaches(range.stop) && !slice.isSample) {
        ranges.add(range.from(slice.end));
      }
    } catch (Throwable t) {
      // Whatever it is: the tool waits for a range as long as this server works on the request.
      String why = t instanceof IOException ? t.getMessage() : t.toString();
      answer = DigestAnswer.refused(range, String.valueOf(why).split("\n", 2)[0]);
    }
    answers.add(answer);
    unsent += answer.size();
  }

  private DigestScan.Slice digest(DigestRequest.Range range, DigestScanner scanner) throws IOException {
    Region region = server.region(range.region);
    if (region == null) {
      throw new IOException("the region is not open here");
    }
    if (server.openSeq(region) != range.openSeq) {
      throw new IOException("the region has been opened anew");
    }
    DigestRequest.TableRequest asked = request.table(region.getRegionInfo().getTable());
    if (asked == null || !DigestScan.holds(region.getRegionInfo(), range.start, range.stop)) {
      throw new IOException("the region does not hold that range");
    }
    return scanner.scan(region, asked, request.rate, range);
  }

  /** Writes the answers when they have waited long enough, when there are many, or when no more will follow for now. */
  void send(RequestTable table, long now) throws IOException {
    if (answers.isEmpty() || (!ranges.isEmpty() && now < answerAt && unsent < ANSWER_BYTES)) {
      return;
    }
    // Each attempt has a row of its own: the tool does not read one again that a failed attempt may have left.
    table.put(List.of(new StateRow(key(AnswerRow.TYPE, origin + Ids.hex(nextAnswer++)))
        .add(AnswerRow.ANSWERS, DigestAnswer.cell(answers), StateRow.SERVER_TIME)));
    answers.clear();
    unsent = 0;
    answerAt = now + ANSWER_MS;
    if (ranges.isEmpty()) {
      refreshAt = now;
    }
  }

  /** Reads one slice of a range of a region. */
  interface DigestScanner {
    /** @param rate bytes per second; 0 means the server's limit only */
    DigestScan.Slice scan(Region region, DigestRequest.TableRequest request, long rate, DigestRequest.Range range)
        throws IOException;
  }
}
