package io.github.statustool.hdfs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.MD5MD5CRC32GzipFileChecksum;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.io.MD5Hash;
import org.apache.hadoop.ipc.RemoteException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Frames in, frames out, without HDFS. */
class RequestsTest {
  private static final byte[] MD5 = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

  private final CountDownLatch gate = new CountDownLatch(1);
  private DataOutputStream to;
  private DataInputStream from;
  private Thread server;
  private Map<String, String> site;

  /** Files by what their names say. */
  private final class Named implements HdfsFiles {
    @Override
    public HdfsFileStatus status(String path) throws IOException {
      return path.equals("/absent") ? null : entry(path, 7);
    }

    @Override
    public DirectoryListing page(String path, String after) throws IOException {
      if (path.equals("/absent")) {
        return null;
      }
      if (path.equals("/denied")) {
        throw new RemoteException("org.apache.hadoop.security.AccessControlException", "Permission denied");
      }
      return new DirectoryListing(new HdfsFileStatus[] {entry("größe", 1), entry(after + "b", 2)}, 5);
    }

    @Override
    public ContentSummary summary(String path) {
      return new ContentSummary.Builder().fileCount(3).length(1L << 40).build();
    }

    @Override
    public FileChecksum checksum(String path) throws IOException {
      if (path.equals("/slow")) {
        try {
          gate.await(20, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
          throw new IOException(e);
        }
      }
      if (path.equals("/gone")) {
        throw new FileNotFoundException("File does not exist: /gone\n\tat a.b.C");
      }
      if (path.equals("/mute")) {
        throw new IllegalStateException();
      }
      return new MD5MD5CRC32GzipFileChecksum(512, 0, new MD5Hash(MD5));
    }

    @Override
    public long crc(String path, long offset, long length) {
      return -offset - length;
    }

    @Override
    public String pool(String path) {
      return "BP-1";
    }

    private HdfsFileStatus entry(String name, long length) {
      return new HdfsFileStatus.Builder().length(length).mtime(8).blocksize(9)
          .path(name.getBytes(StandardCharsets.UTF_8)).build();
    }
  }

  @BeforeEach
  void start() throws IOException {
    PipedOutputStream requests = new PipedOutputStream();
    PipedInputStream answers = new PipedInputStream(1 << 20);
    DataInputStream in = new DataInputStream(new PipedInputStream(requests, 1 << 20));
    DataOutputStream out = new DataOutputStream(new PipedOutputStream(answers));
    to = new DataOutputStream(requests);
    from = new DataInputStream(answers);
    Requests served = new Requests(in, out, (uri, properties, mounts) -> {
      site = properties;
      if (uri.equals("hdfs://nowhere")) {
        throw new IOException("no such host");
      }
      return new Named();
    });
    server = new Thread(() -> {
      try {
        served.serve();
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    });
    server.start();
  }

  @AfterEach
  void end() throws Exception {
    gate.countDown();
    to.close();
    server.join(20_000);
    assertEquals(Thread.State.TERMINATED, server.getState(), "the end of the input ends it");
  }

  private void ask(int number, char operation, Object... fields) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream body = new DataOutputStream(bytes);
    body.writeInt(number);
    body.writeByte(operation);
    for (Object field : fields) {
      if (field instanceof Integer) {
        body.writeInt((Integer) field);
      } else if (field instanceof Long) {
        body.writeLong((Long) field);
      } else if (field instanceof Double) {
        body.writeDouble((Double) field);
      } else {
        byte[] text = ((String) field).getBytes(StandardCharsets.UTF_8);
        body.writeInt(text.length);
        body.write(text);
      }
    }
    to.writeInt(bytes.size());
    bytes.writeTo(to);
    to.flush();
  }

  /** Reads an answer's length; returns its number. */
  private int answered() throws IOException {
    from.readInt();
    return from.readInt();
  }

  private String text() throws IOException {
    byte[] bytes = new byte[from.readInt()];
    from.readFully(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private void given() throws IOException {
    assertEquals('A', from.readByte());
  }

  private void refused(String name, String message) throws IOException {
    assertEquals('R', from.readByte());
    assertEquals(name, text());
    assertEquals(message, text());
  }

  private void open() throws IOException {
    ask(1, 'O', 2, 0.0, "hdfs://here", 1, "key", "größe", 0);
    assertEquals(1, answered());
    given();
    assertEquals(Map.of("key", "größe"), site);
  }

  @Test
  void aFileSystemThatCannotBeOpened() throws IOException {
    ask(1, 'O', 2, 0.0, "hdfs://nowhere", 0, 0);
    assertEquals(1, answered());
    refused("IOException", "no such host");
  }

  @Test
  void statusAndListing() throws IOException {
    open();
    ask(2, 'S', "/f");
    assertEquals(2, answered());
    given();
    entry("/f", 7);
    ask(3, 'S', "/absent");
    assertEquals(3, answered());
    refused("FileNotFoundException", "File does not exist: /absent");
    ask(4, 'L', "/folder", "a");
    assertEquals(4, answered());
    given();
    assertEquals(5, from.readInt());
    assertEquals(2, from.readInt());
    entry("größe", 1);
    entry("ab", 2);
    ask(5, 'L', "/denied", "");
    assertEquals(5, answered());
    refused("AccessControlException", "Permission denied");
    ask(6, 'L', "/absent", "");
    assertEquals(6, answered());
    refused("FileNotFoundException", "File /absent does not exist.");
  }

  private void entry(String name, long length) throws IOException {
    assertEquals(name, text());
    assertEquals('F', from.readByte());
    assertEquals(length, from.readLong());
    assertEquals(8, from.readLong());
    assertEquals(9, from.readLong());
    assertEquals(false, from.readBoolean());
    assertEquals("", text());
  }

  @Test
  void numbers() throws IOException {
    open();
    ask(2, 'C', "/f", 5L, 6L);
    assertEquals(2, answered());
    given();
    assertEquals(-11, from.readLong());
    ask(3, 'N', "/f");
    assertEquals(3, answered());
    given();
    assertEquals(3, from.readLong());
    assertEquals(1L << 40, from.readLong());
    ask(4, 'P', "/f");
    assertEquals(4, answered());
    given();
    assertEquals("BP-1", text());
  }

  @Test
  void checksumsComeInTheirOrderAndNobodyWaitsForTheSlow() throws IOException {
    open();
    ask(2, 'K', 4, "/slow", "/f", "/gone", "/mute");
    ask(3, 'S', "/f");
    ask(4, 'K', 0);
    int first = answered();
    if (first == 4) {
      assertEquals(3, answered());
    } else {
      assertEquals(3, first);
    }
    given();
    entry("/f", 7);
    if (first == 3) {
      assertEquals(4, answered());
    }
    gate.countDown();
    assertEquals(2, answered());
    checksum();
    checksum();
    refused("FileNotFoundException", "File does not exist: /gone\n\tat a.b.C");
    refused("IllegalStateException", "IllegalStateException");
  }

  private void checksum() throws IOException {
    given();
    assertEquals("MD5-of-0MD5-of-512CRC32", text());
    byte[] bytes = new byte[from.readInt()];
    from.readFully(bytes);
    byte[] md5 = new byte[MD5.length];
    System.arraycopy(bytes, 12, md5, 0, md5.length);
    assertEquals(32, bytes.length, "Hadoop's buffer, of which 28 bytes are the checksum's");
    assertArrayEquals(MD5, md5);
  }

  @Test
  void whatIsNoRequest() {
    byte[] frame = {0, 0, 0, 1, 0};
    Requests served = new Requests(
        new DataInputStream(new java.io.ByteArrayInputStream(frame)),
        new DataOutputStream(new ByteArrayOutputStream()),
        (uri, properties, mounts) -> new Named());
    assertThrows(IOException.class, served::serve);
  }
}
