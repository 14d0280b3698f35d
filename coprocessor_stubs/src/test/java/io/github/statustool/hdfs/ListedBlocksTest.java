package io.github.statustool.hdfs;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.junit.jupiter.api.Test;

/** Which listed blocks are kept, and for how long. */
class ListedBlocksTest {
  private final ListedBlocks listed = new ListedBlocks(10);

  private static LocatedBlocks blocks(int count, boolean open) {
    List<LocatedBlock> all = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      all.add(new LocatedBlock(new ExtendedBlock("BP-1", number, 1, 1), new DatanodeInfo[0]));
    }
    return new LocatedBlocks(count, open, all, null, !open, null, null);
  }

  private static HdfsFileStatus file(LocatedBlocks blocks, int permission, long length) {
    return new HdfsFileStatus.Builder().length(length).perm(new FsPermission((short) permission))
        .path("f".getBytes(StandardCharsets.UTF_8)).locations(blocks).build();
  }

  private LocatedBlocks kept(LocatedBlocks blocks, int permission, long length) {
    listed.offer("/f", file(blocks, permission, length));
    return listed.take("/f");
  }

  @Test
  void onceForAFileThatAllMayRead() {
    LocatedBlocks blocks = blocks(2, false);
    assertSame(blocks, kept(blocks, 0644, 2));
    assertNull(listed.take("/f"), "a second one asks the NameNode: the first did not get what it wanted");
    assertNull(listed.take("/other"));
  }

  @Test
  void whatTheNameNodeMightRefuseOrDecideOtherwise() {
    assertNull(kept(blocks(1, false), 0640, 1));
    assertNull(kept(blocks(1, false), 0044, 1));
    assertNull(kept(blocks(1, false), 0404, 1));
    assertNull(kept(blocks(1, true), 0644, 1), "it is being written");
    assertNull(kept(blocks(1, false), 0644, 2), "it has another length than its blocks");
    HdfsFileStatus withAcl = new HdfsFileStatus.Builder().length(1).perm(new FsPermission((short) 0644))
        .flags(EnumSet.of(HdfsFileStatus.Flags.HAS_ACL)).locations(blocks(1, false)).build();
    listed.offer("/f", withAcl);
    assertNull(listed.take("/f"));
    listed.offer("/f", new HdfsFileStatus.Builder().perm(new FsPermission((short) 0644)).build());
    assertNull(listed.take("/f"), "listed without its blocks");
  }

  @Test
  void whatAnEarlierListingShowedIsForgotten() {
    listed.offer("/f", file(blocks(1, false), 0644, 1));
    assertNull(kept(blocks(1, true), 0644, 1), "it was opened again: its checksum is that of an earlier content");
    listed.offer("/f", file(blocks(1, false), 0644, 1));
    assertNull(kept(blocks(1, false), 0600, 1), "it may no longer be read");
  }

  @Test
  void theOldestGiveWay() {
    LocatedBlocks blocks = blocks(3, false);
    for (int number = 0; number < 5; number++) {
      listed.offer("/" + number, file(blocks, 0644, 3));
    }
    assertNull(listed.take("/2"));
    assertSame(blocks, listed.take("/3"));
    assertSame(blocks, listed.take("/4"));
    listed.offer("/large", file(blocks(11, false), 0644, 11));
    assertNull(listed.take("/large"), "more blocks than all may have");
    for (int number = 5; number < 7; number++) {
      listed.offer("/" + number, file(blocks, 0644, 3));
    }
    assertSame(blocks, listed.take("/5"));
    assertSame(blocks, listed.take("/6"));
  }
}
