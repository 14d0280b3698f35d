package io.github.statustool.digests;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.hadoop.hbase.util.Bytes;

/** The answer for a range: a slice of it, digested at one read point, or why it was refused. */
final class DigestAnswer {
  private static final byte SLICE = 0;
  private static final byte REFUSED = 1;

  private final byte[] bytes;

  private DigestAnswer(byte[] bytes) {
    this.bytes = bytes;
  }

  /** @param end end of the slice, exclusive; empty means the end of the table */
  static DigestAnswer slice(DigestRequest.Range range, long readPoint, List<RowDigest.Bucket> buckets, byte[] end) {
    return new DigestAnswer(written(range, readPoint, SLICE, out -> {
      write(out, buckets.get(0).start);
      out.writeInt(buckets.size());
      for (int i = 0; i < buckets.size(); i++) {
        write(out, i + 1 < buckets.size() ? buckets.get(i + 1).start : end);
        buckets.get(i).sums.write(out);
      }
    }));
  }

  static DigestAnswer refused(DigestRequest.Range range, String reason) {
    return new DigestAnswer(written(range, -1, REFUSED, out -> write(out, Bytes.toBytes(reason))));
  }

  private static byte[] written(DigestRequest.Range range, long readPoint, byte kind, Body body) {
    return toBytes(out -> {
      out.writeInt(range.part);
      write(out, Bytes.toBytes(range.region));
      out.writeLong(range.openSeq);
      out.writeLong(readPoint);
      out.writeByte(kind);
      body.write(out);
    });
  }

  static byte[] cell(List<DigestAnswer> answers) {
    return toBytes(out -> {
      out.writeByte(DigestRequest.VERSION);
      out.writeInt(answers.size());
      for (DigestAnswer answer : answers) {
        out.write(answer.bytes);
      }
    });
  }

  int size() {
    return bytes.length;
  }

  private static byte[] toBytes(Body body) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      body.write(new DataOutputStream(bytes));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  private static void write(DataOutputStream out, byte[] field) throws IOException {
    out.writeInt(field.length);
    out.write(field);
  }

  private interface Body {
    void write(DataOutputStream out) throws IOException;
  }
}
