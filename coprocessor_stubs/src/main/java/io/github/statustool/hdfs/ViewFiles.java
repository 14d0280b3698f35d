package io.github.statustool.hdfs;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/**
 * A view ({@code viewfs://}) of several file systems, with paths as the view has them. A path belongs to the longest
 * mount point that it lies in; what is mounted at {@code /} is the fallback. Folders show the mount points in them, too.
 *
 * <p>Not Hadoop's {@code ViewFileSystem}: its listing has no pages, and neither erasure coding policies nor encryption.
 */
final class ViewFiles implements HdfsFiles {
  /** Opens {@code hdfs://AUTHORITY}. */
  interface Opener {
    HdfsFiles open(String uri) throws IOException;
  }

  /** A file system, and the folder in it that is mounted; without a file system it is not HDFS. */
  private static final class Mount {
    final URI uri;
    final HdfsFiles files;

    Mount(URI uri, HdfsFiles files) {
      this.uri = uri;
      this.files = files;
    }
  }

  /** A path of the view, where it leads. */
  private static final class Place {
    final HdfsFiles files;
    final String path;

    Place(HdfsFiles files, String path) {
      this.files = files;
      this.path = path;
    }
  }

  private final TreeMap<String, Mount> mounts = new TreeMap<>();

  /** @param targets paths of the view and the URLs that are mounted there */
  ViewFiles(Map<String, String> targets, Opener opener) throws IOException {
    Map<String, HdfsFiles> opened = new HashMap<>();
    for (Map.Entry<String, String> target : targets.entrySet()) {
      URI uri = URI.create(target.getValue());
      HdfsFiles files = null;
      if ("hdfs".equals(uri.getScheme()) && uri.getAuthority() != null) {
        files = opened.get(uri.getAuthority());
        if (files == null) {
          files = opener.open("hdfs://" + uri.getAuthority());
          opened.put(uri.getAuthority(), files);
        }
      }
      mounts.put(target.getKey(), new Mount(uri, files));
    }
  }

  /** Returns the place that a path leads to; null if only the view knows it, or nothing does. */
  private Place find(String path) throws IOException {
    for (String at = path; ; at = parent(at)) {
      Mount mount = mounts.get(at);
      if (mount != null) {
        if (mount.files == null) {
          throw new IOException(path + " is mounted from " + mount.uri + ", which is not hdfs://NAME/…");
        }
        String rest = at.equals("/") ? path : path.substring(at.length());
        return new Place(mount.files, join(mount.uri.getPath(), rest));
      }
      if (at.equals("/")) {
        return null;
      }
    }
  }

  private Place place(String path) throws IOException {
    Place found = find(path);
    if (found == null) {
      throw new FileNotFoundException("File does not exist: " + path);
    }
    return found;
  }

  private static String parent(String path) {
    int slash = path.lastIndexOf('/');
    return slash <= 0 ? "/" : path.substring(0, slash);
  }

  private static String join(String folder, String rest) {
    String base = folder.endsWith("/") ? folder.substring(0, folder.length() - 1) : folder;
    String tail = rest.equals("/") ? "" : rest;
    return base.isEmpty() && tail.isEmpty() ? "/" : base + tail;
  }

  /** Returns the mount points below a folder: the next part of the path to each, in order. */
  private TreeMap<String, HdfsFileStatus> shown(String folder) {
    String prefix = folder.equals("/") ? "/" : folder + "/";
    TreeMap<String, HdfsFileStatus> names = new TreeMap<>(ViewFiles::byBytes);
    for (String mount : mounts.tailMap(prefix, false).keySet()) {
      if (!mount.startsWith(prefix)) {
        break;
      }
      String name = mount.substring(prefix.length()).split("/", 2)[0];
      names.put(name, folderStatus(name));
    }
    return names;
  }

  /** Compares names in HDFS's order, of signed bytes. */
  private static int byBytes(String one, String other) {
    return DFSUtilClient.compareBytes(one.getBytes(StandardCharsets.UTF_8), other.getBytes(StandardCharsets.UTF_8));
  }

  private static HdfsFileStatus folderStatus(String name) {
    return new HdfsFileStatus.Builder().isdir(true).path(name.getBytes(StandardCharsets.UTF_8)).build();
  }

  @Override
  public HdfsFileStatus status(String path) throws IOException {
    Place place = find(path);
    HdfsFileStatus found = place == null ? null : place.files.status(place.path);
    return found == null && !shown(path).isEmpty() ? folderStatus("") : found;
  }

  /** Returns a page of a folder. A mount point precedes an entry of the same name in the file system below. */
  @Override
  public DirectoryListing page(String path, String after) throws IOException {
    TreeMap<String, HdfsFileStatus> entries = shown(path);
    Place place = find(path);
    DirectoryListing found = place == null ? null : place.files.page(place.path, after);
    if (entries.isEmpty()) {
      return found;
    }
    int remaining = found == null ? 0 : found.getRemainingEntries();
    if (found != null) {
      for (HdfsFileStatus entry : found.getPartialListing()) {
        entries.putIfAbsent(entry.getLocalName(), entry);
      }
    }
    if (remaining > 0) { // mount points after the page's end come with a later one
      HdfsFileStatus[] all = found.getPartialListing();
      entries = new TreeMap<>(entries.headMap(all[all.length - 1].getLocalName(), true));
    }
    entries = new TreeMap<>(entries.tailMap(after, false));
    return new DirectoryListing(entries.values().toArray(new HdfsFileStatus[0]), remaining);
  }

  @Override
  public ContentSummary summary(String path) throws IOException {
    ContentSummary found = summaryOrNone(find(path));
    long files = found.getFileCount();
    long bytes = found.getLength();
    String prefix = path.equals("/") ? "/" : path + "/";
    for (String mount : mounts.keySet()) {
      if (mount.startsWith(prefix) && !mount.equals(path)) {
        ContentSummary more = summaryOrNone(place(mount));
        files += more.getFileCount();
        bytes += more.getLength();
      }
    }
    return new ContentSummary.Builder().fileCount(files).length(bytes).build();
  }

  private static ContentSummary summaryOrNone(Place place) throws IOException {
    try {
      return place == null ? new ContentSummary.Builder().build() : place.files.summary(place.path);
    } catch (FileNotFoundException nothingThere) {
      return new ContentSummary.Builder().build();
    }
  }

  @Override
  public FileChecksum checksum(String path) throws IOException {
    Place place = place(path);
    return place.files.checksum(place.path);
  }

  @Override
  public long crc(String path, long offset, long length) throws IOException {
    Place place = place(path);
    return place.files.crc(place.path, offset, length);
  }

  @Override
  public String pool(String path) throws IOException {
    Place place = place(path);
    return place.files.pool(place.path);
  }
}
