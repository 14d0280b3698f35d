package io.github.statustool.hdfs;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/**
 * Requests in, answers out, each as its length (int) and so many bytes, of which the first four are the request's
 * number: answers come as they are ready. The first request opens HDFS. {@code clients/hdfs_native.py} is the other
 * end.
 */
final class Requests {
  private static final int MAX_FRAME = 64 << 20;

  /** Opens a file system by its URI, the site files' properties, and the mount points of a view. */
  interface Opener {
    HdfsFiles open(String uri, Map<String, String> site, Map<String, String> mounts) throws IOException;
  }

  /** Work of one request. */
  private interface Work {
    Answer answer() throws IOException;
  }

  private final DataInputStream in;
  private final DataOutputStream out;
  private final Opener opener;
  private volatile HdfsFiles files;
  private volatile RateLimit rate = new RateLimit(0);
  private ExecutorService listing;
  private ExecutorService reading;

  Requests(DataInputStream in, DataOutputStream out, Opener opener) {
    this.in = in;
    this.out = out;
    this.opener = opener;
  }

  /** Takes requests until the input ends. */
  void serve() throws IOException {
    while (true) {
      int length;
      try {
        length = in.readInt();
      } catch (EOFException end) {
        return;
      }
      if (length < 5 || length > MAX_FRAME) {
        throw new IOException("a request of " + length + " bytes");
      }
      byte[] frame = new byte[length];
      in.readFully(frame);
      ByteBuffer request = ByteBuffer.wrap(frame);
      dispatch(request.getInt(), (char) request.get(), request);
    }
  }

  private void dispatch(int number, char operation, ByteBuffer request) throws IOException {
    switch (operation) {
      case 'O':
        send(number, attempt(() -> open(request)));
        break;
      case 'S':
        listing.execute(() -> reply(number, () -> status(text(request))));
        break;
      case 'L':
        listing.execute(() -> reply(number, () -> page(text(request), text(request))));
        break;
      case 'N':
        listing.execute(() -> reply(number, () -> summary(text(request))));
        break;
      case 'P':
        listing.execute(() -> reply(number, () -> new Answer().given().text(files.pool(text(request)))));
        break;
      case 'C':
        reading.execute(() -> reply(number, () -> new Answer().given()
            .number(files.crc(text(request), request.getLong(), request.getLong()))));
        break;
      case 'K':
        checksums(number, request);
        break;
      default:
        throw new IOException("unknown operation " + (int) operation);
    }
  }

  /**
   * Opens a file system by threads, NameNode requests a second (0: unlimited), its URI, the site files' properties and
   * mount points.
   */
  private Answer open(ByteBuffer request) throws IOException {
    int threads = request.getInt();
    rate = new RateLimit(request.getDouble());
    String uri = text(request);
    Map<String, String> site = pairs(request);
    Map<String, String> mounts = pairs(request);
    listing = Executors.newFixedThreadPool(Math.max(1, threads / 2), Requests::daemon);
    reading = Executors.newFixedThreadPool(threads, Requests::daemon);
    files = opener.open(uri, site, mounts);
    return new Answer().given();
  }

  private Answer status(String path) throws IOException {
    HdfsFileStatus status = files.status(path);
    if (status == null) {
      throw new FileNotFoundException("File does not exist: " + path);
    }
    return new Answer().given().status(status);
  }

  private Answer page(String path, String after) throws IOException {
    DirectoryListing listing = files.page(path, after);
    if (listing == null) {
      throw new FileNotFoundException("File " + path + " does not exist.");
    }
    return new Answer().given().listing(listing);
  }

  private Answer summary(String path) throws IOException {
    ContentSummary found = files.summary(path);
    return new Answer().given().number(found.getFileCount()).number(found.getLength());
  }

  /**
   * Answers for many files at once: the answer has one for each of them, in their order, and goes out with the last
   * one.
   */
  private void checksums(int number, ByteBuffer request) throws IOException {
    byte[][] answers = new byte[request.getInt()][];
    AtomicInteger left = new AtomicInteger(answers.length);
    if (answers.length == 0) {
      send(number, new byte[0]);
    }
    for (int i = 0; i < answers.length; i++) {
      int at = i;
      String path = text(request);
      reading.execute(() -> {
        answers[at] = attempt(() -> new Answer().given().checksum(files.checksum(path)));
        if (left.decrementAndGet() == 0) {
          send(number, answers);
        }
      });
    }
  }

  private void reply(int number, Work work) {
    send(number, attempt(work));
  }

  /** Returns the answer, once it is its turn, or the refusal. */
  private byte[] attempt(Work work) {
    try {
      try {
        rate.await();
        return work.answer().toBytes();
      } catch (IOException | InterruptedException | RuntimeException error) {
        return new Answer().refused(error).toBytes();
      }
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible); // bytes in memory
    }
  }

  private void send(int number, byte[]... parts) {
    int length = 4;
    for (byte[] part : parts) {
      length += part.length;
    }
    synchronized (out) {
      try {
        out.writeInt(length);
        out.writeInt(number);
        for (byte[] part : parts) {
          out.write(part);
        }
        out.flush();
      } catch (IOException closed) {
        HdfsReader.end(1); // nobody is there to be answered
      }
    }
  }

  private static Map<String, String> pairs(ByteBuffer from) {
    Map<String, String> pairs = new HashMap<>();
    for (int left = from.getInt(); left > 0; left--) {
      pairs.put(text(from), text(from));
    }
    return pairs;
  }

  private static String text(ByteBuffer from) {
    byte[] bytes = new byte[from.getInt()];
    from.get(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "hdfs");
    thread.setDaemon(true);
    return thread;
  }
}
