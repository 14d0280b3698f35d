package io.github.statustool.hdfs;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.ipc.RemoteException;

/**
 * The body of an answer. Numbers are big-endian; a text is its length in bytes (int) and UTF-8. What HDFS refuses is
 * {@code 'R'}, the exception's simple name and its message; else {@code 'A'} and what was asked for.
 */
final class Answer {
  private static final int MAX_MESSAGE = 2_000;

  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
  private final DataOutputStream out = new DataOutputStream(bytes);

  byte[] toBytes() {
    return bytes.toByteArray();
  }

  Answer given() throws IOException {
    out.writeByte('A');
    return this;
  }

  Answer number(int number) throws IOException {
    out.writeInt(number);
    return this;
  }

  Answer number(long number) throws IOException {
    out.writeLong(number);
    return this;
  }

  Answer refused(Throwable error) throws IOException {
    String name = error.getClass().getSimpleName();
    if (error instanceof RemoteException) {
      String remote = ((RemoteException) error).getClassName();
      name = remote.substring(remote.lastIndexOf('.') + 1);
    }
    String message = String.valueOf(error.getMessage() == null ? name : error.getMessage());
    out.writeByte('R');
    return text(name).text(message.substring(0, Math.min(MAX_MESSAGE, message.length())));
  }

  Answer text(String text) throws IOException {
    return bytes(text.getBytes(StandardCharsets.UTF_8));
  }

  Answer bytes(byte[] value) throws IOException {
    out.writeInt(value.length);
    out.write(value);
    return this;
  }

  Answer checksum(FileChecksum checksum) throws IOException {
    return text(checksum.getAlgorithmName()).bytes(checksum.getBytes());
  }

  /** Adds a page of a listing: how many entries follow it, how many it has, and each of them. */
  Answer listing(DirectoryListing listing) throws IOException {
    HdfsFileStatus[] entries = listing.getPartialListing();
    out.writeInt(listing.getRemainingEntries());
    out.writeInt(entries.length);
    for (HdfsFileStatus entry : entries) {
      status(entry);
    }
    return this;
  }

  /**
   * Adds a file's status as WebHDFS shows it: name, type, length, modification time, block size, encryption, erasure
   * coding policy.
   */
  Answer status(HdfsFileStatus status) throws IOException {
    text(status.getLocalName());
    out.writeByte(status.isDirectory() ? 'D' : status.isSymlink() ? 'S' : 'F');
    out.writeLong(status.getLen());
    out.writeLong(status.getModificationTime());
    out.writeLong(status.getBlockSize());
    out.writeBoolean(status.isEncrypted());
    return text(status.getErasureCodingPolicy() == null ? "" : status.getErasureCodingPolicy().getName());
  }
}
