package io.github.statustool.hdfs;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.Map;

/**
 * The tool's process beside its own: it asks HDFS by Hadoop's client, and ends with the pipe that it reads from. So it
 * never outlives the tool, however that ends. Its class path is Spark's Hadoop and this jar.
 */
public final class HdfsReader {
  private HdfsReader() {}

  public static void main(String[] arguments) {
    DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
    System.setOut(System.err); // whatever a library prints must not get between the answers
    Thread.setDefaultUncaughtExceptionHandler((thread, error) -> fail(error)); // else an answer would never come
    try {
      new Requests(new DataInputStream(new BufferedInputStream(System.in)), out, HdfsReader::open).serve();
      end(0);
    } catch (IOException | RuntimeException error) {
      fail(error);
    }
  }

  private static HdfsFiles open(String uri, Map<String, String> site, Map<String, String> mounts) throws IOException {
    return mounts.isEmpty() ? new DfsFiles(uri, site) : new ViewFiles(mounts, target -> new DfsFiles(target, site));
  }

  private static void fail(Throwable error) {
    System.err.println(error);
    end(1);
  }

  /** Ends the process without Hadoop's shutdown hooks: there is nothing to clean up. */
  static void end(int code) {
    Runtime.getRuntime().halt(code);
  }
}
