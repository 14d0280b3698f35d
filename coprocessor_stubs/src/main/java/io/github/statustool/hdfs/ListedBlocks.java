package io.github.statustool.hdfs;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.HdfsLocatedFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;

/** Files' blocks as a listing has shown them, each until a checksum takes it; the oldest give way to new ones. */
final class ListedBlocks {
  private final int most;
  private final Map<String, LocatedBlocks> kept = new LinkedHashMap<>();
  private int blocks;

  /** @param most so many blocks, of all files, are kept */
  ListedBlocks(int most) {
    this.most = most;
  }

  /** Keeps the blocks of a file that the NameNode would give to anybody who asks for them. */
  void offer(String path, HdfsFileStatus status) {
    take(path); // of an earlier listing: the file may have been opened again since
    if (!(status instanceof HdfsLocatedFileStatus) || !isReadableByAll(status)) {
      return; // whether it may be read is the NameNode's to say
    }
    LocatedBlocks found = ((HdfsLocatedFileStatus) status).getLocatedBlocks();
    if (found != null && !found.isUnderConstruction() && found.getFileLength() == status.getLen()) {
      put(path, found);
    }
  }

  private static boolean isReadableByAll(HdfsFileStatus status) {
    FsPermission permission = status.getPermission();
    return status.isFile()
        && !status.hasAcl()
        && permission.getUserAction().implies(FsAction.READ)
        && permission.getGroupAction().implies(FsAction.READ)
        && permission.getOtherAction().implies(FsAction.READ);
  }

  private synchronized void put(String path, LocatedBlocks found) {
    take(path); // another thread's
    kept.put(path, found);
    blocks += weight(found);
    for (Iterator<LocatedBlocks> oldest = kept.values().iterator(); blocks > most; oldest.remove()) {
      blocks -= weight(oldest.next());
    }
  }

  /** Returns a file's blocks, once; null where they are not known. */
  synchronized LocatedBlocks take(String path) {
    LocatedBlocks found = kept.remove(path);
    blocks -= found == null ? 0 : weight(found);
    return found;
  }

  private static int weight(LocatedBlocks found) {
    return 1 + found.locatedBlockCount();
  }
}
