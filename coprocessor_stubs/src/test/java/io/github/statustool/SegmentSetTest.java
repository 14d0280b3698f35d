package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class SegmentSetTest {
  private static final int MAX_SEQ = 60;

  private static Segment segment(long prev, long seq) {
    return new Segment(prev, seq, 100 + prev, 100 + seq);
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
  }

  @Test
  void aColumnReadsBackAsTheSegment() {
    Segment segment = new Segment(3, 900, 5, 6);
    Segment read = Segment.parse(segment.qualifier(), segment.value());
    assertEquals(segment, read);
    assertEquals(5, read.firstTime);
    assertEquals(6, read.lastTime);
  }

  @Test
  void otherColumnsAreNoSegments() {
    assertNull(Segment.parse(Columns.R, Bits.ofLong(1)));
    assertNull(Segment.parse(segment(0, 1).qualifier(), Bits.ofLong(1)));
  }
}
