package io.github.statustool.lab;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hbase.thirdparty.com.google.gson.Gson;
import org.apache.hbase.thirdparty.com.google.gson.GsonBuilder;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;

/**
 * One cluster's administrator. Reads one command per line, {@code {"id": 1, "command": "put_rows", "args": {…}}}, and
 * answers with one line, {@code {"id": 1, "result": …}} or
 * {@code {"id": 1, "error": "class name", "message": "…"}}, in order. Ends when its standard input ends.
 */
public final class LabAdmin {

  private final Gson gson = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
  private final Map<String, Command> commands = new HashMap<>();
  private final PrintStream answers;

  private LabAdmin(Connection connection, Admin admin, FileSystem files, PrintStream answers) {
    this.answers = answers;
    new ClusterCommands(admin, files).register(commands);
    new TableCommands(admin).register(commands);
    new PeerCommands(admin).register(commands);
    new SnapshotCommands(admin).register(commands);
    new RegionCommands(connection, admin).register(commands);
    new RowCommands(connection, files).register(commands);
    new LoadCommands(connection).register(commands);
    new StateRowCommands(connection).register(commands);
    new MixCommands(connection).register(commands);
    new VerifyCommands(connection.getConfiguration(), files).register(commands);
    new FileCommands(files).register(commands);
  }

  /** For a cluster without HBase: only the commands about files. */
  private LabAdmin(FileSystem files, PrintStream answers) {
    this.answers = answers;
    new ClusterCommands(null, files).register(commands);
    new FileCommands(files).register(commands);
  }

  /** The cluster is the one of the configuration files on the class path; the argument "hdfs": it has no HBase. */
  public static void main(String[] args) throws IOException {
    PrintStream answers = System.out;
    // Nothing but answers may reach the pipe, whatever a library prints.
    System.setOut(System.err);
    Configuration conf = HBaseConfiguration.create();
    if (args.length > 0 && args[0].equals("hdfs")) {
      try (FileSystem files = FileSystem.get(conf)) {
        new LabAdmin(files, answers).serve();
      }
      System.exit(0);
    }
    try (Connection connection = ConnectionFactory.createConnection(conf);
        Admin admin = connection.getAdmin();
        FileSystem files = FileSystem.get(conf)) {
      new LabAdmin(connection, admin, files, answers).serve();
    }
    // Client threads and background writers would keep the process alive.
    System.exit(0);
  }

  private void serve() throws IOException {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      byte[] answer = gson.toJson(answer(line)).getBytes(StandardCharsets.UTF_8);
      answers.write(answer, 0, answer.length);
      answers.write('\n');
      answers.flush();
    }
  }

  private Map<String, Object> answer(String line) {
    Map<String, Object> answer = new LinkedHashMap<>();
    try {
      JsonObject request = JsonParser.parseString(line).getAsJsonObject();
      answer.put("id", request.get("id").getAsLong());
      String name = request.get("command").getAsString();
      Command command = commands.get(name);
      if (command == null) {
        throw new IllegalArgumentException("no command " + name);
      }
      answer.put("result", command.run(new Args(request.getAsJsonObject("args"))));
    } catch (Exception | LinkageError e) {
      e.printStackTrace();
      answer.put("error", e.getClass().getName());
      answer.put("message", String.valueOf(e.getMessage()));
    }
    return answer;
  }
}
