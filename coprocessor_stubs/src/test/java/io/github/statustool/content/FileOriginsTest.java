package io.github.statustool.content;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileOriginsTest {
  @TempDir private java.nio.file.Path folder;

  private final Configuration conf = HBaseConfiguration.create();
  private FileSystem files;

  @BeforeEach
  void setUp() throws IOException {
    files = FileSystem.getLocal(conf);
  }

  /** Returns an opened file whose name tells nothing, with these marks. */
  private HStoreFile file(byte[]... marks) throws IOException {
    return named(UUID.randomUUID().toString().replace("-", ""), marks);
  }

  private HStoreFile named(String name, byte[]... marks) throws IOException {
    Path path = new Path(folder.resolve(name).toUri());
    try (HFile.Writer writer = HFile.getWriterFactory(conf, CacheConfig.DISABLED).withPath(files, path)
        .withFileContext(new HFileContextBuilder().build()).create()) {
      for (byte[] mark : marks) {
        writer.appendFileInfo(mark, Bytes.toBytes(7L));
      }
    }
    HStoreFile file = new HStoreFile(files, path, conf, CacheConfig.DISABLED, BloomType.NONE, true);
    file.initReader();
    return file;
  }

  private static Map<String, Boolean> origins(List<HStoreFile> held, List<HStoreFile> compacted) {
    Store store = proxy(Store.class,
        Map.of("getColumnFamilyName", "g", "getStorefiles", held, "getCompactedFiles", compacted));
    return FileOrigins.of(proxy(Region.class, Map.of("getStores", List.of(store)))).get("g");
  }

  private static <T> T proxy(Class<T> type, Map<String, Object> answers) {
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
        (proxy, method, args) -> answers.get(method.getName())));
  }

  private static String name(HStoreFile file) {
    return file.getPath().getName();
  }

  @Test
  void aFileWithAPlainNameThatALoadBroughtIsTold() throws IOException {
    HStoreFile loaded = file(HStoreFile.BULKLOAD_TIME_KEY);
    HStoreFile flushed = file(HStoreFile.MAX_SEQ_ID_KEY);
    HStoreFile foreign = file();
    HStoreFile numbered = named("0123456789abcdef_SeqId_4_");
    assertEquals(
        Map.of(name(loaded), true, name(flushed), false, name(foreign), true, name(numbered), true),
        origins(List.of(loaded, flushed, foreign, numbered), List.of()));
  }

  @Test
  void aFileThatWasCompactedSinceIsToldAsWell() throws IOException {
    HStoreFile loaded = file(HStoreFile.BULKLOAD_TIME_KEY);
    HStoreFile compacted = file(HStoreFile.MAX_SEQ_ID_KEY);
    assertEquals(Map.of(name(loaded), true, name(compacted), false), origins(List.of(compacted), List.of(loaded)));
  }

  @Test
  void aRegionThatWasClosedTellsNothing() {
    assertEquals(Map.of(), origins(List.of(), List.of()));
  }
}
