package io.github.statustool.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.StateTable.SegmentRow;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class SegmentSetTest {
  private static final int MAX_SEQ = 60;

  private static Segment segment(long prev, long seq) {
    return new Segment(prev, seq, 100 + prev, 100 + seq, 50 + prev, 1000 + prev);
  }

  private static SegmentSet setOf(List<Segment> segments) {
    SegmentSet set = new SegmentSet();
    segments.forEach(set::add);
    return set;
  }

  /** The naive union: every point of every segment. */
  private static BitSet points(List<Segment> segments) {
    BitSet points = new BitSet();
    for (Segment segment : segments) {
      points.set((int) segment.prev, (int) segment.seq);
    }
    return points;
  }

  private static List<Segment> random(Random random) {
    List<Segment> segments = new ArrayList<>();
    for (int i = random.nextInt(30); i > 0; i--) {
      int prev = random.nextInt(MAX_SEQ);
      segments.add(segment(prev, prev + 1 + random.nextInt(6)));
    }
    return segments;
  }

  @Test
  void holdsTheSamePointsAsTheNaiveUnionInAnyOrder() {
    Random random = new Random(4711);
    for (int round = 0; round < 5000; round++) {
      List<Segment> segments = random(random);
      List<Segment> union = setOf(segments).asList();
      assertEquals(points(segments), points(union));
      for (int i = 1; i < union.size(); i++) {
        assertTrue(union.get(i - 1).seq < union.get(i).prev, "merged as far as possible, in order");
      }
      Collections.shuffle(segments, random);
      segments.addAll(segments.subList(0, segments.size() / 2));
      assertEquals(union, setOf(segments).asList());
    }
  }

  @Test
  void onlyWhatAdjoinsOrOverlapsMerges() {
    assertEquals(List.of(segment(0, 9)), setOf(List.of(segment(0, 5), segment(5, 9))).asList());
    assertEquals(List.of(segment(0, 9)), setOf(List.of(segment(3, 9), segment(0, 5))).asList());
    assertEquals(2, setOf(List.of(segment(0, 5), segment(6, 9))).asList().size());
  }

  @Test
  void aUnionHasTheTimesOfItsFirstAndItsLastEntry() {
    Segment union = setOf(List.of(segment(5, 9), segment(0, 5), segment(9, 12))).asList().get(0);
    assertEquals(100, union.firstTime);
    assertEquals(112, union.lastTime);
    assertEquals(50, union.prevTime);
    assertEquals(1000, union.recorded);
  }

  private static List<Segment> read(byte[] qualifier, byte[] value) {
    SegmentSet into = new SegmentSet();
    return SegmentColumn.read(qualifier, value, into) ? into.asList() : null;
  }

  @Test
  void aColumnReadsBackAsItsSegments() {
    List<Segment> written = List.of(segment(0, 4), segment(6, 900));
    List<Segment> read = read(SegmentColumn.qualifier(-5), SegmentColumn.value(written));
    assertEquals(written, read);
    assertEquals(106, read.get(1).firstTime);
    assertEquals(1000, read.get(1).lastTime);
    assertEquals(56, read.get(1).prevTime);
    assertEquals(1006, read.get(1).recorded);
  }

  @Test
  void otherColumnsAreNoSegments() {
    assertNull(read(SegmentRow.REPLICATED_MS, Bytes.toBytes(1L)));
    byte[] value = SegmentColumn.value(List.of(segment(0, 4)));
    assertNull(read(SegmentColumn.qualifier(1), java.util.Arrays.copyOf(value, value.length - 1)));
    value[0] = 9;
    assertNull(read(SegmentColumn.qualifier(1), value), "of a later version");
  }

  /** A stream with holes that never fill must not grow for good: its ends stay. */
  @Test
  void onlyWhatIsTooMuchIsForgotten() {
    SegmentSet set = new SegmentSet();
    for (int i = 0; i < SegmentSet.MOST; i++) {
      set.add(new Segment(2 * i, 2 * i + 1, 0, 0, 0, 0));
    }
    set.bound();
    assertEquals(SegmentSet.MOST, set.asList().size(), "another server may fill each of the holes");
    set.add(new Segment(2 * SegmentSet.MOST, 2 * SegmentSet.MOST + 1, 0, 0, 0, 0));
    List<Segment> before = List.copyOf(set.asList());
    set.bound();
    assertEquals(before.subList(0, 32), set.asList().subList(0, 32));
    assertEquals(before.subList(before.size() - 64, before.size()), set.asList().subList(32, 96));
    assertEquals(96, set.asList().size(), "nothing is claimed that was not there");
  }
}
