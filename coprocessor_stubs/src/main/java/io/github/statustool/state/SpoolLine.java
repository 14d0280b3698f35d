package io.github.statustool.state;

import java.io.IOException;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;

/** A row as one line of JSON: {@code {"row": hex, "cells": [{"q": hex, "v": hex, "ts": n}]}}. */
final class SpoolLine {
  private static final String ROW = "row";
  private static final String CELLS = "cells";
  private static final String QUALIFIER = "q";
  private static final String VALUE = "v";
  private static final String TIMESTAMP = "ts";
  private static final String END = "]}";

  private SpoolLine() {}

  static String of(StateRow row) {
    JsonArray cells = new JsonArray();
    for (StateRow.Column column : row.columns()) {
      JsonObject cell = new JsonObject();
      cell.addProperty(QUALIFIER, Bytes.toHex(column.qualifier));
      cell.addProperty(VALUE, Bytes.toHex(column.value));
      if (column.timestamp != StateRow.SERVER_TIME) {
        cell.addProperty(TIMESTAMP, column.timestamp);
      }
      cells.add(cell);
    }
    JsonObject line = new JsonObject();
    line.addProperty(ROW, Bytes.toHex(row.key));
    line.add(CELLS, cells);
    return line.toString();
  }

  /** Returns the line as a file holds it. */
  static String terminated(StateRow row) {
    return of(row) + '\n';
  }

  /** Returns true if the line was written to its end. */
  static boolean isWhole(String line) {
    return line.endsWith(END);
  }

  static StateRow parse(String line) throws IOException {
    try {
      JsonObject json = JsonParser.parseString(line).getAsJsonObject();
      StateRow row = new StateRow(Bytes.fromHex(json.get(ROW).getAsString()));
      for (JsonElement element : json.getAsJsonArray(CELLS)) {
        JsonObject cell = element.getAsJsonObject();
        row.add(Bytes.fromHex(cell.get(QUALIFIER).getAsString()), Bytes.fromHex(cell.get(VALUE).getAsString()),
            cell.has(TIMESTAMP) ? cell.get(TIMESTAMP).getAsLong() : StateRow.SERVER_TIME);
      }
      return row;
    } catch (RuntimeException e) {
      throw new IOException("not a line of a spool file: " + line, e);
    }
  }
}
