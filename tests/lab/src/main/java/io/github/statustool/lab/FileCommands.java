package io.github.statustool.lab;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.ChecksumOpt;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.tools.DistCp;
import org.apache.hadoop.util.DataChecksum;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** Files in HDFS. */
final class FileCommands {

  private static final int CHUNK = 64 * 1024;

  private static final int WRITERS = 8;

  private final FileSystem files;
  private final Map<String, FSDataOutputStream> open = new HashMap<>();

  FileCommands(FileSystem files) {
    this.files = files;
  }

  void register(Map<String, Command> commands) {
    commands.put("hdfs_mkdir", args -> files.mkdirs(new Path(args.text("path"))));
    commands.put("hdfs_delete", args -> files.delete(new Path(args.text("path")), true));
    commands.put("hdfs_put", this::put);
    commands.put("hdfs_put_many", this::putMany);
    commands.put("hdfs_open", this::openForWriting);
    commands.put("hdfs_close", this::close);
    commands.put("hdfs_chmod", this::chmod);
    commands.put("hdfs_link", this::link);
    commands.put("hdfs_checksum", this::checksum);
    commands.put("hdfs_distcp", this::distcp);
    commands.put("hadoop_tool", this::tool);
  }

  private Object put(Args args) throws IOException {
    Path path = new Path(args.text("path"));
    long blockSize = args.has("block_size") ? args.number("block_size") : files.getDefaultBlockSize(path);
    try (OutputStream out = create(path, blockSize, checksumOf(args))) {
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

  private static ChecksumOpt checksumOf(Args args) {
    return new ChecksumOpt(
        args.has("checksum_type") ? DataChecksum.Type.valueOf(args.text("checksum_type")) : DataChecksum.Type.DEFAULT,
        args.has("bytes_per_checksum") ? args.integer("bytes_per_checksum") : -1);
  }

  private FSDataOutputStream create(Path path, long blockSize, ChecksumOpt checksum) throws IOException {
    EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE);
    short replication = files.getDefaultReplication(path);
    return files.create(path, FsPermission.getFileDefault(), flags, 4096, replication, blockSize, null, checksum);
  }

  /** Small files, side by side, a thousand to a folder; empty ones, if no content is given. */
  private Object putMany(Args args) throws Exception {
    int count = args.integer("count");
    byte[] content = args.bytes("content");
    ExecutorService pool = Executors.newFixedThreadPool(WRITERS);
    try {
      List<Future<?>> all = new ArrayList<>();
      for (int writer = 0; writer < WRITERS; writer++) {
        int first = writer;
        all.add(
            pool.submit(
                (Callable<Void>)
                    () -> {
                      for (int number = first; number < count; number += WRITERS) {
                        String name = String.format("%03d/f%07d", number / 1000, number);
                        Path path = new Path(args.text("path"), name);
                        try (OutputStream out = files.create(path, true)) {
                          if (content.length > 0) { // empty files need no DataNode
                            out.write(content);
                            out.write(Integer.toString(number).getBytes(StandardCharsets.US_ASCII));
                          }
                        }
                      }
                      return null;
                    }));
      }
      for (Future<?> one : all) {
        one.get();
      }
    } finally {
      pool.shutdownNow();
    }
    return count;
  }

  /** Starts a file that stays open, its content visible to readers. */
  private Object openForWriting(Args args) throws IOException {
    FSDataOutputStream out = files.create(new Path(args.text("path")), true);
    out.write(args.bytes("content"));
    out.hflush();
    open.put(args.text("path"), out);
    return null;
  }

  private Object close(Args args) throws IOException {
    open.remove(args.text("path")).close();
    return null;
  }

  private Object chmod(Args args) throws IOException {
    files.setPermission(new Path(args.text("path")), new FsPermission(args.text("mode")));
    return null;
  }

  private Object link(Args args) throws IOException {
    FileSystem.enableSymlinks();
    files.createSymlink(new Path(args.text("target")), new Path(args.text("path")), false);
    return null;
  }

  /** As {@code hdfs dfs -checksum} prints it; mode is COMPOSITE_CRC or MD5MD5CRC. */
  private Object checksum(Args args) throws IOException {
    Configuration conf = new Configuration(files.getConf());
    conf.set("dfs.checksum.combine.mode", args.text("mode"));
    try (FileSystem own = FileSystem.newInstance(files.getUri(), conf)) {
      List<String> sums = new ArrayList<>();
      for (String path : args.texts("paths")) {
        FileChecksum sum = own.getFileChecksum(new Path(path));
        sums.add(sum == null ? null : sum.toString());
      }
      return sums;
    }
  }

  /** Its exit code. Runs in this JVM, without YARN. */
  private Object distcp(Args args) throws Exception {
    return ToolRunner.run(new DistCp(files.getConf(), null), args.texts("args").toArray(new String[0]));
  }

  /** The exit code of one of Hadoop's own command line tools, run in this JVM. */
  private Object tool(Args args) throws Exception {
    Class<? extends Tool> kind = Class.forName(args.text("name")).asSubclass(Tool.class);
    Tool tool;
    try {
      tool = kind.getConstructor().newInstance();
    } catch (NoSuchMethodException e) {
      tool = kind.getConstructor(Configuration.class).newInstance(files.getConf());
    }
    return ToolRunner.run(files.getConf(), tool, args.texts("args").toArray(new String[0]));
  }
}
