package io.github.statustool.hdfs;

import java.io.IOException;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** Requests to HDFS. Every call throws what Hadoop's client throws, with the NameNode's exceptions unwrapped. */
interface HdfsFiles {
  /** Returns null where there is nothing. */
  HdfsFileStatus status(String path) throws IOException;

  /**
   * Returns a page of a folder's entries after a name, or the file itself under an empty name; null where there is
   * nothing.
   */
  DirectoryListing page(String path, String after) throws IOException;

  /** Returns the content below a path, as the NameNode counts it. */
  ContentSummary summary(String path) throws IOException;

  /** Returns HDFS's MD5 of the whole file's block checksums; for an encrypted file, those of the encrypted bytes. */
  FileChecksum checksum(String path) throws IOException;

  /**
   * Returns the CRC32C of a range of the content, decrypted, and in the lower half its CRC-32; fails where the file ends
   * before it.
   */
  long crc(String path, long offset, long length) throws IOException;

  /** Returns the id of the block pool that holds a file's first block; empty for a file without blocks. */
  String pool(String path) throws IOException;
}
