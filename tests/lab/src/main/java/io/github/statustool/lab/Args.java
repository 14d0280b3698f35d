package io.github.statustool.lab;

import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** The arguments of one command. Bytes travel as base64; an absent argument and a JSON null are the same. */
final class Args {

  private final JsonObject json;

  Args(JsonObject json) {
    this.json = json;
  }

  boolean has(String name) {
    return json.has(name) && !json.get(name).isJsonNull();
  }

  private JsonElement required(String name) {
    if (!has(name)) {
      throw new IllegalArgumentException("argument " + name + " is missing");
    }
    return json.get(name);
  }

  String text(String name) {
    return required(name).getAsString();
  }

  long number(String name) {
    return required(name).getAsLong();
  }

  int integer(String name) {
    return required(name).getAsInt();
  }

  boolean flag(String name) {
    return has(name) && json.get(name).getAsBoolean();
  }

  byte[] bytes(String name) {
    return Base64.getDecoder().decode(text(name));
  }

  TableName table() {
    return TableName.valueOf(text("table"));
  }

  Durability durability() {
    return has("durability") ? Durability.valueOf(text("durability")) : Durability.USE_DEFAULT;
  }

  List<String> texts(String name) {
    List<String> all = new ArrayList<>();
    if (has(name)) {
      json.getAsJsonArray(name).forEach(e -> all.add(e.getAsString()));
    }
    return all;
  }

  byte[][] byteArrays(String name) {
    return texts(name).stream().map(Base64.getDecoder()::decode).toArray(byte[][]::new);
  }

  Map<String, Integer> integers(String name) {
    Map<String, Integer> all = new LinkedHashMap<>();
    required(name).getAsJsonObject().entrySet().forEach(e -> all.put(e.getKey(), e.getValue().getAsInt()));
    return all;
  }

  /** Empty if it is missing. */
  Map<String, String> textMap(String name) {
    Map<String, String> all = new LinkedHashMap<>();
    if (has(name)) {
      json.getAsJsonObject(name).entrySet().forEach(e -> all.put(e.getKey(), e.getValue().getAsString()));
    }
    return all;
  }

  Map<String, List<String>> textLists(String name) {
    Map<String, List<String>> all = new LinkedHashMap<>();
    JsonObject lists = required(name).getAsJsonObject();
    lists.keySet().forEach(key -> all.put(key, new Args(lists).texts(key)));
    return all;
  }

  static String base64(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }
}
