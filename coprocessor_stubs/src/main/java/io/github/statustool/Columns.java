package io.github.statustool;

/** The family and the qualifiers of the state table; formats.md says what each means in which row. */
final class Columns {
  static final byte[] FAMILY = Bits.ascii("t");

  static final byte[] A = Bits.ascii("a");
  static final byte[] B = Bits.ascii("b");
  static final byte[] C = Bits.ascii("c");
  static final byte[] D = Bits.ascii("d");
  static final byte[] E = Bits.ascii("e");
  static final byte[] F = Bits.ascii("f");
  static final byte[] H = Bits.ascii("h");
  static final byte[] I = Bits.ascii("i");
  static final byte[] K = Bits.ascii("k");
  static final byte[] L = Bits.ascii("l");
  static final byte[] M = Bits.ascii("m");
  static final byte[] N = Bits.ascii("n");
  static final byte[] Q = Bits.ascii("q");
  static final byte[] R = Bits.ascii("r");
  static final byte[] S = Bits.ascii("s");
  static final byte[] T = Bits.ascii("t");
  static final byte[] U = Bits.ascii("u");
  static final byte[] V = Bits.ascii("v");
  static final byte[] W = Bits.ascii("w");
  static final byte[] X = Bits.ascii("x");
  static final byte[] Z = Bits.ascii("z");

  static final byte[] BARRIER_ROW = Bits.ascii("b");
  static final byte[] COVERAGE_ROW = Bits.ascii("c");

  static final char HEAD = 'h';
  static final char SEGMENTS = 's';
  static final char UNSTAMPED = 'u';
  static final char FACTS = 'g';
  static final char CONTENT = 'f';
  static final char SERVER = 'o';
  static final char TABLE = 't';
  static final char TABLE_EVENTS = 'n';

  private static final String[] SPLITS = {"h4", "h8", "hc", "i", "s4", "s8", "sc", "t"};

  private Columns() {}

  static byte[][] splitKeys() {
    byte[][] keys = new byte[SPLITS.length][];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = Bits.ascii(SPLITS[i]);
    }
    return keys;
  }
}
