package io.github.statustool.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * Every kind of row of the state table, byte by byte, as lines of a spool file. The trackers have to write what {@code
 * state/tracker-rows.jsonl} has, and to read what the tool writes: {@code state/tool-*.jsonl}. The tool tests the same
 * files: tests/unit/test_golden_rows.py. If rows are to change: {@code mvn test -Dtest='*RowsTest'
 * -Dgolden.write=src/test/resources/state/tracker-rows.jsonl}.
 */
public final class GoldenRows {
  private GoldenRows() {}

  /** @param types the first bytes of the row keys */
  public static void assertWritten(String types, List<StateRow> rows) throws IOException {
    TreeSet<String> lines = new TreeSet<>();
    rows.forEach(row -> lines.add(SpoolLine.of(row)));
    String target = System.getProperty("golden.write");
    if (target != null) {
      TreeSet<String> all = new TreeSet<>(Files.readAllLines(Path.of(target)));
      all.removeIf(line -> isOf(types, line));
      all.addAll(lines);
      Files.write(Path.of(target), all);
    }
    List<String> expected = lines("tracker-rows").stream().filter(line -> isOf(types, line))
        .collect(Collectors.toList());
    assertEquals(String.join("\n", expected), String.join("\n", lines));
  }

  private static boolean isOf(String types, String line) {
    try {
      return types.indexOf(SpoolLine.parse(line).key[0]) >= 0;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The rows of a file of the tool. */
  public static List<StateRow> read(String name) throws IOException {
    List<StateRow> rows = new ArrayList<>();
    for (String line : lines(name)) {
      rows.add(SpoolLine.parse(line));
    }
    return rows;
  }

  private static List<String> lines(String name) throws IOException {
    try (InputStream in = GoldenRows.class.getResourceAsStream("/state/" + name + ".jsonl")) {
      assertNotNull(in, name);
      String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      return text.lines().collect(Collectors.toList());
    }
  }
}
