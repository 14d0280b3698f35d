package io.github.statustool.content;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;

/**
 * The store files of a region from one opening to a later close: those that it opened with, and those that it was
 * closed with or has now. The value of a column of an {@code f} row; formats.md explains the keys.
 */
final class Tenure {
  /** Sequence id of the opening. */
  long open;
  /** Time when it was opened, by its server's clock. */
  long began;
  /** Sequence id of the last marker. */
  long seq;
  /** Time when it was closed; 0 if it is open, or was until its server crashed. */
  long closed;
  /**
   * Highest sequence id that the region has to open above, even after a crash: known to be in a store file or, on a
   * slave, durable in the WAL. HBase opens a region above all that it has replayed.
   */
  long durable;
  /** Time when it opened with files of another region that no split or merge explains; otherwise 0. */
  long elsewhere;
  /**
   * Time when it opened although no earlier holder is known and it is neither new nor of a split or merge; otherwise 0.
   */
  long unseen;
  /** Time when it opened although the region had been split or merged before; otherwise 0. */
  long again;
  List<String> replicated = List.of();
  /** What the region's table keeps, as the JSON of {@link Retention}; null: not known. */
  String kept;
  Map<String, StoreFiles.Content> before = new TreeMap<>();
  Map<String, StoreFiles.Content> after = new TreeMap<>();

  /**
   * Returns true if the other tenure continues this one: it begins where this one ended, with the same files, nothing
   * can have happened in between, no other family is replicated, and the table keeps as much as before, as far as
   * known.
   */
  boolean isFollowedBy(Tenure next) {
    return closed > 0 && next.open == seq + 1 && after.equals(next.before) && replicated.containsAll(next.replicated)
        && (kept == null || next.kept == null || kept.equals(next.kept));
  }

  /** Returns true if the other one is an earlier state of this tenure, or has been taken over by it. */
  boolean hasTheBeginningOf(Tenure other) {
    return open == other.open && began == other.began;
  }

  /** Extends this tenure back to the beginning of its predecessor. */
  void takeOver(Tenure earlier) {
    open = earlier.open;
    began = earlier.began;
    before = earlier.before;
    elsewhere = earlier.elsewhere;
    unseen = earlier.unseen;
    again = Math.max(again, earlier.again);
    durable = Math.max(durable, earlier.durable);
    kept = kept == null ? earlier.kept : kept;
  }

  String toJson() {
    JsonObject json = new JsonObject();
    json.addProperty("o", open);
    json.addProperty("t", began);
    json.addProperty("s", seq);
    add(json, "c", closed);
    add(json, "m", durable);
    add(json, "x", elsewhere);
    add(json, "u", unseen);
    add(json, "y", again);
    JsonArray families = new JsonArray();
    replicated.forEach(families::add);
    json.add("r", families);
    if (kept != null) {
      json.add("k", JsonParser.parseString(kept));
    }
    json.add("a", toJson(before));
    json.add("b", toJson(after));
    return json.toString();
  }

  private static void add(JsonObject json, String key, long value) {
    if (value != 0) {
      json.addProperty(key, value);
    }
  }

  private static JsonObject toJson(Map<String, StoreFiles.Content> families) {
    JsonObject json = new JsonObject();
    families.forEach((family, content) -> {
      JsonArray numbers = new JsonArray();
      numbers.add(content.count);
      numbers.add(content.sum);
      numbers.add(content.links);
      numbers.add(content.loaded);
      json.add(family, numbers);
    });
    return json;
  }

  /** Returns null if the value is damaged. */
  static Tenure parse(byte[] value) {
    try {
      JsonObject json = JsonParser.parseString(Bytes.toString(value)).getAsJsonObject();
      Tenure tenure = new Tenure();
      tenure.open = json.get("o").getAsLong();
      tenure.began = json.get("t").getAsLong();
      tenure.seq = json.get("s").getAsLong();
      tenure.closed = number(json, "c");
      tenure.durable = number(json, "m");
      tenure.elsewhere = number(json, "x");
      tenure.unseen = number(json, "u");
      tenure.again = number(json, "y");
      tenure.replicated = new ArrayList<>();
      json.getAsJsonArray("r").forEach(family -> tenure.replicated.add(family.getAsString()));
      tenure.kept = json.has("k") ? json.get("k").toString() : null;
      tenure.before = families(json.getAsJsonObject("a"));
      tenure.after = families(json.getAsJsonObject("b"));
      return tenure;
    } catch (RuntimeException e) {
      return null;
    }
  }

  private static long number(JsonObject json, String key) {
    return json.has(key) ? json.get(key).getAsLong() : 0;
  }

  private static Map<String, StoreFiles.Content> families(JsonObject json) {
    Map<String, StoreFiles.Content> families = new TreeMap<>();
    for (Map.Entry<String, JsonElement> family : json.entrySet()) {
      JsonArray numbers = family.getValue().getAsJsonArray();
      families.put(family.getKey(), new StoreFiles.Content(numbers.get(0).getAsLong(), numbers.get(1).getAsLong(),
          numbers.get(2).getAsLong(), numbers.get(3).getAsLong()));
    }
    return families;
  }
}
