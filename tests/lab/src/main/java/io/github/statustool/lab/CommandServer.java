package io.github.statustool.lab;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hbase.thirdparty.com.google.gson.Gson;
import org.apache.hbase.thirdparty.com.google.gson.GsonBuilder;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;

/**
 * Reads one command per line, {@code {"id": 1, "command": "put_rows", "args": {…}}}, and answers with one line, {@code
 * {"id": 1, "result": …}} or {@code {"id": 1, "error": "class name", "message": "…"}}, in order. Ends when its standard
 * input ends.
 */
final class CommandServer {

  /** By name, to be filled before {@link #serve}. */
  final Map<String, Command> commands = new HashMap<>();

  private final Gson gson = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
  private final PrintStream answers;

  private CommandServer(PrintStream answers) {
    this.answers = answers;
  }

  /** The one of this process; from now on nothing but answers reaches the pipe, whatever a library prints. */
  static CommandServer onStandardOutput() {
    PrintStream answers = System.out;
    System.setOut(System.err);
    return new CommandServer(answers);
  }

  void serve() throws IOException {
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
