package io.github.statustool.lab;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Files in HDFS. */
final class FileCommands {

  private static final int CHUNK = 64 * 1024;

  private final FileSystem files;

  FileCommands(FileSystem files) {
    this.files = files;
  }

  void register(Map<String, Command> commands) {
    commands.put("hdfs_mkdir", args -> files.mkdirs(new Path(args.text("path"))));
    commands.put("hdfs_delete", args -> files.delete(new Path(args.text("path")), true));
    commands.put("hdfs_put", this::put);
  }

  private Object put(Args args) throws IOException {
    Path path = new Path(args.text("path"));
    long blockSize = args.has("block_size") ? args.number("block_size") : files.getDefaultBlockSize(path);
    short replication = files.getDefaultReplication(path);
    try (OutputStream out = files.create(path, true, 4096, replication, blockSize)) {
      if (args.has("content")) {
        out.write(args.bytes("content"));
      } else {
        fill(out, args.number("size"), args.number("seed"));
      }
    }
    return files.getFileStatus(path).getLen();
  }

  /** The same seed and size give the same content on every cluster. */
  private static void fill(OutputStream out, long size, long seed) throws IOException {
    Random random = new Random(seed);
    byte[] chunk = new byte[CHUNK];
    for (long left = size; left > 0; left -= CHUNK) {
      random.nextBytes(chunk);
      out.write(chunk, 0, (int) Math.min(left, CHUNK));
    }
  }
}
