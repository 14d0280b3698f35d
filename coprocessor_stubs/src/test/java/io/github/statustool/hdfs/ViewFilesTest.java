package io.github.statustool.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.junit.jupiter.api.Test;

/** Paths of a view, and where each leads. */
class ViewFilesTest {
  private static final int PAGE = 2;

  /** A file system of files by their paths, with pages of two entries; a checksum fails with where it was asked. */
  private static final class Tree implements HdfsFiles {
    private final String name;
    private final List<String> paths;

    Tree(String name, String... paths) {
      this.name = name;
      this.paths = List.of(paths);
    }

    private boolean has(String folder) {
      return paths.stream().anyMatch(path -> path.equals(folder) || path.startsWith(slashed(folder)));
    }

    private static String slashed(String folder) {
      return folder.equals("/") ? "/" : folder + "/";
    }

    @Override
    public HdfsFileStatus status(String path) {
      return has(path) ? entry("", !paths.contains(path)) : null;
    }

    @Override
    public DirectoryListing page(String path, String after) {
      if (!has(path)) {
        return null;
      }
      TreeSet<String> names = new TreeSet<>(ViewFilesTest::byNameNode);
      for (String one : paths) {
        if (one.startsWith(slashed(path))) {
          names.add(one.substring(slashed(path).length()).split("/")[0]);
        }
      }
      List<String> left = new ArrayList<>(names.tailSet(after, false));
      HdfsFileStatus[] page = left.stream().limit(PAGE)
          .map(child -> entry(child, !paths.contains(slashed(path) + child))).toArray(HdfsFileStatus[]::new);
      return new DirectoryListing(page, left.size() - page.length);
    }

    private static HdfsFileStatus entry(String name, boolean folder) {
      return new HdfsFileStatus.Builder().isdir(folder).path(name.getBytes(StandardCharsets.UTF_8)).build();
    }

    @Override
    public ContentSummary summary(String path) throws IOException {
      if (!has(path)) {
        throw new FileNotFoundException(path);
      }
      return new ContentSummary.Builder().fileCount(paths.size()).length(10).build();
    }

    @Override
    public FileChecksum checksum(String path) throws IOException {
      throw new IOException(name + path);
    }

    @Override
    public long crc(String path, long offset, long length) {
      return path.length();
    }

    @Override
    public String pool(String path) {
      return name + path;
    }
  }

  /** Compares names as a NameNode does ({@code INode.compareTo}). */
  private static int byNameNode(String one, String other) {
    return Arrays.compare(one.getBytes(StandardCharsets.UTF_8), other.getBytes(StandardCharsets.UTF_8));
  }

  private final List<String> opened = new ArrayList<>();

  private ViewFiles view(Map<String, String> mounts) throws IOException {
    Map<String, Tree> trees = Map.of(
        "hdfs://one", new Tree("one", "/d/a", "/d/b", "/d/c", "/d/nested/hidden", "/f", "/x/far/loose", "/x/data/hidden"),
        "hdfs://two", new Tree("two", "/a", "/b/c"));
    return new ViewFiles(mounts, uri -> {
      opened.add(uri);
      return trees.get(uri);
    });
  }

  private final Map<String, String> mounts = Map.of(
      "/data", "hdfs://one/d/", "/data/nested", "hdfs://two/b", "/far/two", "hdfs://two", "/far/file", "hdfs://one/f",
      "/absent", "hdfs://two/nowhere", "/", "hdfs://one/x", "/other", "s3a://bucket/");

  private static List<String> names(HdfsFiles files, String path) throws IOException {
    List<String> found = new ArrayList<>();
    for (String after = ""; ; after = found.get(found.size() - 1)) {
      DirectoryListing page = files.page(path, after);
      for (HdfsFileStatus entry : page.getPartialListing()) {
        found.add(entry.getLocalName());
      }
      if (page.getRemainingEntries() == 0) {
        return found;
      }
    }
  }

  @Test
  void aPathLeadsWhereItsLongestMountPointDoes() throws IOException {
    ViewFiles view = view(mounts);
    assertEquals("one/d/a", view.pool("/data/a"));
    assertEquals("two/b/c", view.pool("/data/nested/c"));
    assertEquals("one/d/nestedness", view.pool("/data/nestedness"));
    assertEquals("two/", view.pool("/far/two"));
    assertEquals("two/b/c", view.pool("/far/two/b/c"));
    assertEquals("one/f", view.pool("/far/file"));
    assertEquals("one/x/elsewhere", view.pool("/elsewhere"));
    assertEquals("one/x", view.pool("/"));
    assertEquals("one/d/a", assertThrows(IOException.class, () -> view.checksum("/data/a")).getMessage());
    assertEquals("/d/a".length(), view.crc("/data/a", 0, 1));
    assertEquals(List.of("hdfs://one", "hdfs://two"), new ArrayList<>(new TreeSet<>(opened)));
    assertEquals(2, opened.size(), "one client for each file system");
  }

  @Test
  void foldersShowWhatIsMountedInThem() throws IOException {
    ViewFiles view = view(mounts);
    assertEquals(List.of("absent", "data", "far", "other"), names(view, "/"));
    assertEquals(List.of("a", "b", "c", "nested"), names(view, "/data"));
    assertEquals(List.of("c"), names(view, "/data/nested"));
    assertEquals(List.of("file", "loose", "two"), names(view, "/far"), "of the fallback, too");
    assertEquals(List.of("a", "b"), names(view, "/far/two"));
    assertNull(view.page("/absent", ""));
    assertTrue(view.page("/data", "b").getPartialListing()[1].isDirectory());
  }

  @Test
  void pagesOfNamesThatAreNotAsciiLoseNothing() throws IOException {
    Tree umlauts = new Tree("three", "/d/Mai", "/d/Müller", "/d/é", "/d/a", "/d/日本");
    ViewFiles view = new ViewFiles(Map.of("/", "hdfs://three", "/d/b", "hdfs://three/d"), uri -> umlauts);
    assertEquals(List.of("é", "日本", "Müller", "Mai", "a", "b"), names(view, "/d"));
  }

  @Test
  void whatIsThere() throws IOException {
    ViewFiles view = view(mounts);
    assertTrue(view.status("/").isDirectory());
    assertTrue(view.status("/far").isDirectory());
    assertTrue(view.status("/far/file").isFile());
    assertNull(view.status("/nowhere"));
    assertNull(view.status("/absent"));
    assertEquals(7 + 7 + 2, view.summary("/far").getFileCount(), "of the fallback, the file and the other file system");
    String why = assertThrows(IOException.class, () -> view.page("/other/f", "")).getMessage();
    assertEquals("/other/f is mounted from s3a://bucket/, which is not hdfs://NAME/…", why);
  }

  @Test
  void withoutAFallback() throws IOException {
    ViewFiles view = view(Map.of("/a/b", "hdfs://two"));
    assertEquals(List.of("a"), names(view, "/"));
    assertEquals(List.of("b"), names(view, "/a"));
    assertTrue(view.status("/a").isDirectory());
    assertNull(view.status("/c"));
    assertNull(view.page("/c", ""));
    assertThrows(FileNotFoundException.class, () -> view.checksum("/a"));
    assertEquals(2, view.summary("/").getFileCount());
  }
}
