package io.github.statustool.state;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Records of requests, as puts and as lines that are appended to an open file: {@code CONF_DIR TABLE FILE}. A line
 * {@code WAY RECORDS THREADS} on stdin, with {@code put} or {@code append}, is answered by {@code done}.
 */
public final class RecordTurns {
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] VALUE = new byte[48];

  private final AsyncTable<?> table;
  private final FSDataOutputStream file;
  private final Object flushing = new Object();
  private long written;
  private long flushed;

  private RecordTurns(AsyncTable<?> table, FSDataOutputStream file) {
    this.table = table;
    this.file = file;
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.addResource(new Path(args[0], "core-site.xml"));
    conf.addResource(new Path(args[0], "hdfs-site.xml"));
    conf.addResource(new Path(args[0], "hbase-site.xml"));
    Path path = new Path(args[2]);
    AsyncConnection connection = ConnectionFactory.createAsyncConnection(conf).get();
    FSDataOutputStream file = path.getFileSystem(conf).create(path);
    new RecordTurns(connection.getTable(TableName.valueOf(args[1])), file).serve();
    System.exit(0);
  }

  private void serve() throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      int threads = Integer.parseInt(words[2]);
      boolean puts = words[0].equals("put");
      ExecutorService pool = Executors.newFixedThreadPool(threads);
      List<Future<Void>> ends = new ArrayList<>();
      for (int thread = 0; thread < threads; thread++) {
        ends.add(pool.submit(work(puts, Integer.parseInt(words[1]) / threads, "stream" + thread)));
      }
      for (Future<Void> end : ends) {
        end.get();
      }
      pool.shutdown();
      System.out.println("done");
    }
  }

  private Callable<Void> work(boolean puts, int records, String stream) {
    return () -> {
      for (int record = 0; record < records; record++) {
        if (puts) {
          table.put(new Put(Bytes.toBytes(stream)).addColumn(FAMILY, FAMILY, VALUE)).get();
        } else {
          append(Bytes.toBytes(stream + Bytes.toHex(VALUE) + '\n'));
        }
      }
      return null;
    };
  }

  /** Returns once the line is on the DataNode. One flush does for all threads that wait meanwhile. */
  private void append(byte[] line) throws IOException {
    long mine;
    synchronized (file) {
      file.write(line);
      mine = ++written;
    }
    synchronized (flushing) {
      if (flushed < mine) {
        long now;
        synchronized (file) {
          now = written;
        }
        file.hflush();
        flushed = now;
      }
    }
  }
}
