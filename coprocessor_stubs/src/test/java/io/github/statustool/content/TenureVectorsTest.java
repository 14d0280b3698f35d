package io.github.statustool.content;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;
import org.junit.jupiter.api.Test;

/** The tool reads the same file: tests/unit/test_content_vectors.py. */
class TenureVectorsTest {
  private static JsonArray vectors(String name) throws IOException {
    try (InputStream in = TenureVectorsTest.class.getResourceAsStream("/ledger/tenures.json")) {
      return JsonParser.parseString(new String(in.readAllBytes(), StandardCharsets.UTF_8)).getAsJsonObject()
          .getAsJsonArray(name);
    }
  }

  private static Tenure tenure(JsonObject vector, String name) {
    return Tenure.parse(vector.get(name).getAsString().getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void filesAreCountedAndSummedAsTheVectorsSay() throws IOException {
    for (JsonElement vector : vectors("files")) {
      List<String> names = new ArrayList<>();
      vector.getAsJsonObject().getAsJsonArray("names").forEach(name -> names.add(name.getAsString()));
      StoreFiles files = new StoreFiles();
      files.add(names);
      StoreFiles.Content content = files.content();
      assertEquals(vector.getAsJsonObject().get("numbers").toString(),
          "[" + content.count + "," + content.sum + "," + content.links + "," + content.loaded + "]");
    }
  }

  @Test
  void tenuresAreWrittenAndJoinedAsTheVectorsSay() throws IOException {
    for (JsonElement element : vectors("tenures")) {
      JsonObject vector = element.getAsJsonObject();
      Tenure earlier = tenure(vector, "earlier");
      Tenure later = tenure(vector, "later");
      assertEquals(vector.get("earlier").getAsString(), earlier.toJson());
      assertEquals(vector.get("later").getAsString(), later.toJson());
      boolean joins = !vector.get("joined").isJsonNull();
      assertEquals(joins, earlier.isFollowedBy(later), vector.get("what").getAsString());
      if (joins) {
        later.takeOver(earlier);
        assertEquals(vector.get("joined").getAsString(), later.toJson());
      }
    }
  }
}
