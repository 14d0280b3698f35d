package io.github.statustool.lab;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.mapreduce.replication.VerifyReplication;
import org.apache.hadoop.hbase.mapreduce.replication.VerifyReplication.Verifier.Counters;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.mapreduce.Job;

/** HBase's own row-by-row comparison, and a file system that is full. */
final class VerifyCommands {

  private final Configuration conf;
  private final FileSystem files;

  VerifyCommands(Configuration conf, FileSystem files) {
    this.conf = conf;
    this.files = files;
  }

  void register(Map<String, Command> commands) {
    commands.put("verify_replication", this::verify);
    commands.put("space_quota", this::spaceQuota);
  }

  /** Runs VerifyReplication in this process; its counters by their names in lower case. */
  private Object verify(Args args) throws Exception {
    Configuration own = new Configuration(conf);
    own.set("mapreduce.framework.name", "local");
    own.set("fs.defaultFS", "file:///");
    // Or else local jobs sleep for seconds between looks at their only task.
    own.set("mapreduce.client.progressmonitor.pollinterval", "100");
    own.set("mapreduce.client.completion.pollinterval", "100");
    own.set("mapreduce.cluster.local.dir", args.text("folder") + "/local");
    own.set("mapreduce.jobtracker.staging.root.dir", args.text("folder") + "/staging");
    List<String> words = new ArrayList<>(List.of("--raw", "--versions=1000000"));
    words.add("--families=" + String.join(",", args.texts("families")));
    words.addAll(List.of(args.text("peer"), args.text("table")));
    Job job = new VerifyReplication().createSubmittableJob(own, words.toArray(new String[0]));
    if (job == null || !job.waitForCompletion(false)) {
      throw new IllegalStateException("VerifyReplication failed");
    }
    Map<String, Object> answer = new LinkedHashMap<>();
    for (Counters counter : Counters.values()) {
      answer.put(counter.name().toLowerCase(Locale.ROOT), job.getCounters().findCounter(counter).getValue());
    }
    return answer;
  }

  /** How many bytes a folder may hold in all; absent: any number again. */
  private Object spaceQuota(Args args) throws Exception {
    long bytes = args.has("bytes") ? args.number("bytes") : HdfsConstants.QUOTA_RESET;
    ((DistributedFileSystem) files).setQuota(new Path(args.text("path")), HdfsConstants.QUOTA_DONT_SET, bytes);
    return null;
  }
}
