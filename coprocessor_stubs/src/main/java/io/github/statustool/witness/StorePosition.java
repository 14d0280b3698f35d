package io.github.statustool.witness;

import java.nio.charset.StandardCharsets;

/** A position in a witness's folder: the number of a log, and how much of it is meant. */
final class StorePosition implements Comparable<StorePosition> {
  static final StorePosition START = new StorePosition(0, 0);

  final long number;
  final long length;

  StorePosition(long number, long length) {
    this.number = number;
    this.length = length;
  }

  /** Returns what {@link #toZnode} wrote; null for anything else. */
  static StorePosition ofZnode(byte[] data) {
    String[] words = new String(data, StandardCharsets.UTF_8).split(" ");
    try {
      return words.length == 3 ? new StorePosition(Long.parseLong(words[1]), Long.parseLong(words[2])) : null;
    } catch (NumberFormatException error) {
      return null;
    }
  }

  byte[] toZnode(String address) {
    return (address + " " + number + " " + length).getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public int compareTo(StorePosition other) {
    return number == other.number ? Long.compare(length, other.length) : Long.compare(number, other.number);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof StorePosition && compareTo((StorePosition) other) == 0;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(31 * number + length);
  }

  static StorePosition later(StorePosition one, StorePosition other) {
    return one.compareTo(other) < 0 ? other : one;
  }
}
