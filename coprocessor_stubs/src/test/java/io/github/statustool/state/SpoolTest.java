package io.github.statustool.state;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.StateTable.HeadRow;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.state.StateTable.TableEventRow;
import io.github.statustool.streams.Fixtures;
import java.io.File;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.hbase.ClusterId;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.util.Progressable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SpoolTest {
  @TempDir
  private Path folder;

  private Spool spool;
  private final FakeStore store = new FakeStore();

  @BeforeEach
  void openSpool() {
    spool = new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(folder.toUri()));
  }

  private static StateRow row() {
    return new StateRow(Bytes.toBytes("hrow"))
        .add(HeadRow.SEQ, 77, 77)
        .add(HeadRow.TABLE, Bytes.toBytes("tä"), StateRow.SERVER_TIME)
        .add(HeadRow.START_KEY, new byte[0], 77);
  }

  private String[] files() {
    return files(folder);
  }

  private static String[] files(Path in) {
    return in.toFile().list((same, name) -> !name.startsWith("."));
  }

  @Test
  void aLineReadsBackAsTheRow() throws IOException {
    StateRow read = SpoolLine.parse(SpoolLine.of(row()));
    assertArrayEquals(row().key, read.key);
    assertEquals(3, read.columns().size());
    assertEquals(77, read.columns().get(0).timestamp);
    assertEquals(StateRow.SERVER_TIME, read.columns().get(1).timestamp);
    assertArrayEquals(Bytes.toBytes("tä"), read.columns().get(1).value);
    assertEquals(0, read.columns().get(2).value.length);
  }

  @Test
  void theLineIsThatOfTheFormat() {
    StateRow row = new StateRow(Bytes.toBytes("h")).add(HeadRow.SEQ, 1, 5)
        .add(HeadRow.TABLE, Bytes.toBytes("t"), StateRow.SERVER_TIME);
    assertEquals("{\"row\":\"68\",\"cells\":[{\"q\":\"73\",\"v\":\"0000000000000001\",\"ts\":5},"
        + "{\"q\":\"74\",\"v\":\"74\"}]}", SpoolLine.of(row));
  }

  @Test
  void whatWasSpooledComesHomeAndTheFileGoes() throws IOException {
    spool.write(5, 1234, List.of(row(), new StateRow(Bytes.toBytes("o")).add(ServerRow.FINAL_MS, 9, 9)));
    assertArrayEquals(new String[] {"0000000000000005-1234-0.jsonl"}, files());
    assertEquals(1, spool.drain(store));
    assertEquals(77, store.number(Bytes.toBytes("hrow"), HeadRow.SEQ));
    assertEquals(9, store.number(Bytes.toBytes("o"), ServerRow.FINAL_MS));
    assertEquals(0, files().length);
  }

  @Test
  void theRowOfAServerIsWrittenLastAndNotAfterAFailure() throws IOException {
    StateRow server = new StateRow(Bytes.toBytes("o")).add(ServerRow.FINAL_MS, 9, 9);
    spool.write(5, 1234, List.of(server, row()));
    store.afterHeads = () -> store.down = true;
    assertThrows(IOException.class, () -> spool.drain(store));
    assertEquals(List.of("hrow"), store.log);
    store.afterHeads = () -> { };
    store.down = false;
    assertEquals(1, spool.drain(store));
    assertEquals(List.of("hrow", "hrow", "o"), store.log);
  }

  /** Who reads segments of a table that was emptied has to find that it was. */
  @Test
  void eventsOfTablesAreWrittenFirst() throws IOException {
    StateRow event = new StateRow(Bytes.toBytes("nt")).add(TableEventRow.BORN_MS, 9, 9);
    spool.write(5, 1234, List.of(row(), event));
    store.away = TableEventRow.TYPE;
    assertThrows(IOException.class, () -> spool.drain(store));
    assertEquals(List.of(), store.log);
    store.away = 0;
    assertEquals(1, spool.drain(store));
    assertEquals(List.of("nt", "hrow"), store.log);
  }

  @Test
  void aFileStaysUntilItsRowsAreInTheTable() throws IOException {
    spool.write(5, 1234, List.of(row()));
    store.down = true;
    assertThrows(IOException.class, () -> spool.drain(store));
    assertEquals(1, files().length);
  }

  @Test
  void aFileThatHBasesClientRefusesIsKeptAndDoesNotStopTheOthers() throws IOException {
    spool.write(5, 1234, List.of(new StateRow(Bytes.toBytes("srow")).add(HeadRow.SEQ, 1, 1)));
    spool.write(6, 1235, List.of(row()));
    store.tooLarge = 's';
    assertThrows(IOException.class, () -> spool.drain(store));
    assertEquals(List.of("hrow"), store.log);
    assertEquals(1, files().length);
  }

  @Test
  void aFileThatALiveServerMayAppendToIsLeftToIt() throws IOException {
    ServerName server = ServerName.valueOf("host", 1, 1);
    store.live.add(server);
    spool.open(Ids.origin(server.toString()), 1234).append(List.of(row()));
    assertEquals(0, spool.drain(store));
    assertEquals(1, files().length);
    store.live.clear();
    assertEquals(1, spool.drain(store));
    assertEquals(77, store.number(Bytes.toBytes("hrow"), HeadRow.SEQ));
  }

  @Test
  void whatIsNotFinishedIsNotRead() throws IOException {
    Files.writeString(folder.resolve("x.jsonl.tmp"), "{");
    assertEquals(0, spool.drain(store));
  }

  @Test
  void whatAKilledServerHasNotFinishedIsDeletedInTheEnd() throws IOException {
    ServerName alive = ServerName.valueOf("host", 1, 1);
    store.live.add(alive);
    String itsFile = Ids.hex(Ids.origin(alive.toString())) + "-1234-0.jsonl.tmp";
    for (String name : new String[] {itsFile, "0000000000000005-1234-0.jsonl.tmp"}) {
      Files.writeString(folder.resolve(name), "{");
    }
    spool.drain(store);
    assertEquals(2, files().length, "a server without a znode may still write its last rows");
    for (String name : files()) {
      Files.setLastModifiedTime(folder.resolve(name), FileTime.fromMillis(System.currentTimeMillis() - 3_700_000));
    }
    assertEquals(0, spool.drain(store));
    assertArrayEquals(new String[] {itsFile}, files());
  }

  /** As HDFS without space it takes each create, and no bytes. It renames nothing. */
  public static final class FullFileSystem extends RawLocalFileSystem {
    private static boolean isFull;
    private static boolean deletes;

    @Override
    public URI getUri() {
      return URI.create("full:///");
    }

    @Override
    public FSDataOutputStream create(org.apache.hadoop.fs.Path file, boolean overwrite, int bufferSize,
        short replication, long blockSize, Progressable progress) throws IOException {
      OutputStream out = super.create(file, overwrite, bufferSize, replication, blockSize, progress);
      return new FSDataOutputStream(isFull ? new FullStream(out) : out, null);
    }

    @Override
    public boolean rename(org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path to) {
      return false;
    }

    @Override
    public boolean delete(org.apache.hadoop.fs.Path file, boolean recursive) throws IOException {
      if (!deletes) {
        throw new IOException("away");
      }
      return super.delete(file, recursive);
    }
  }

  private static final class FullStream extends FilterOutputStream {
    private FullStream(OutputStream out) {
      super(out);
    }

    @Override
    public void close() throws IOException {
      super.close();
      throw new IOException("could only be written to 0 nodes");
    }
  }

  @Test
  void whatCannotBeFinishedIsDeletedAtOnce() {
    Configuration conf = Fixtures.conf();
    conf.setClass("fs.full.impl", FullFileSystem.class, FileSystem.class);
    Spool full = new Spool(conf, new org.apache.hadoop.fs.Path("full://" + folder));
    for (boolean isFull : new boolean[] {true, false}) {
      FullFileSystem.isFull = isFull;
      FullFileSystem.deletes = true;
      String why = isFull ? "could only be written to 0 nodes" : "could not rename";
      assertTrue(failure(full).getMessage().startsWith(why));
      assertEquals(0, files().length);
    }
    FullFileSystem.deletes = false;
    IOException both = failure(full);
    assertTrue(both.getMessage().startsWith("could not rename"), "the reason that came first");
    assertEquals("away", both.getSuppressed()[0].getMessage());
  }

  private static IOException failure(Spool full) {
    return assertThrows(IOException.class, () -> full.write(5, 1234, List.of(row())));
  }

  @Test
  void aDamagedFileIsKeptAndDoesNotStopTheOthers() throws IOException {
    Files.writeString(folder.resolve("0.jsonl"), "{\"row\": \"6");
    spool.write(5, 1234, List.of(row()));
    assertThrows(IOException.class, () -> spool.drain(store));
    assertEquals(77, store.number(Bytes.toBytes("hrow"), HeadRow.SEQ));
    assertArrayEquals(new String[] {"0.jsonl"}, files());
  }

  @Test
  void twoClustersThatShareTheFolderLeaveEachOthersFilesAlone() throws IOException {
    Spool one = ofCluster("one");
    Spool two = ofCluster("two");
    one.write(5, 1234, List.of(row()));
    one.open(6, 1234).append(List.of(row()));
    one.write(77);
    assertEquals(0, two.drain(store));
    assertEquals(0, two.read());
    assertEquals(2, one.drain(store));
    assertEquals(77, one.read());
    assertArrayEquals(new String[] {"mark-77"}, files(folder.resolve("shared/one")));
  }

  private Spool ofCluster(String id) throws IOException {
    Path root = Files.createDirectories(folder.resolve("root-" + id));
    Files.write(root.resolve("hbase.id"), new ClusterId(id).toByteArray());
    return ofCluster(root);
  }

  private Spool ofCluster(Path root) {
    Configuration conf = Fixtures.conf();
    conf.set(HConstants.HBASE_DIR, root.toUri().toString());
    return Spool.ofCluster(conf, new org.apache.hadoop.fs.Path(folder.resolve("shared").toUri()));
  }

  @Test
  void withoutAClustersIdNothingIsWrittenUntilThereIsOne() throws IOException {
    Spool early = ofCluster(folder.resolve("root-one"));
    assertThrows(IOException.class, () -> early.write(5, 1234, List.of(row())));
    assertThrows(IOException.class, early::read);
    ofCluster("one");
    early.write(5, 1234, List.of(row()));
    assertEquals(1, early.drain(store));
  }

  @Test
  void noFolderIsNoFiles() throws IOException {
    File missing = folder.resolve("missing").toFile();
    assertEquals(0, new Spool(Fixtures.conf(), new org.apache.hadoop.fs.Path(missing.toURI())).drain(store));
  }
}
