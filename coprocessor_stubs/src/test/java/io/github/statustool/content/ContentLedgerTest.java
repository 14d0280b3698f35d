package io.github.statustool.content;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.Change;
import io.github.statustool.state.FakeStore;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.FactRow;
import io.github.statustool.state.StateTable.TableEventRow;
import io.github.statustool.state.StoredRow;
import io.github.statustool.streams.Fixtures;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.FlushDescriptor.FlushAction;
import org.apache.hadoop.hbase.shaded.protobuf.generated.WALProtos.RegionEventDescriptor.EventType;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.junit.jupiter.api.Test;

class ContentLedgerTest {
  private static final String OTHER_SERVER = "other,16020,1700000000001";
  private static final String ONE = "0123456789abcdef0123456789abcdef";
  private static final String TWO = "123456789abcdef0123456789abcdef0";
  private static final String THREE = "23456789abcdef0123456789abcdef01";
  private static final String PARENT = "00000000000000000000000000000001";
  private static final ServerName NAME = ServerName.valueOf(Fixtures.SERVER);

  private final AtomicLong clock = new AtomicLong(5_000);
  private final FakeStore store = new FakeStore();
  private final RegionInfo region = Fixtures.region("t");
  private Server here = new Server(Fixtures.SERVER);
  private final Server there = new Server(OTHER_SERVER);

  /** A region server's ledger, its WAL and its recorder. */
  private final class Server {
    private final TableEvents events = new TableEvents();
    private final ContentLedger content = new ContentLedger(Fixtures.health(), clock::get, events);
    private final RegionFacts facts = new RegionFacts();
    private final TenureJoiner joiner = new TenureJoiner(content, facts, clock::get, 1_000);
    private final MarkerForwarder markers;

    private Server(String name) {
      markers =
          new MarkerForwarder(Ids.origin(name), Fixtures.SETTINGS, content, new TableWrites.Registry(), facts);
    }

    private void append(RegionInfo of, long seq, WALEdit edit) throws IOException {
      WALKeyImpl key = Fixtures.key(of, seq, Fixtures.scopes());
      markers.note(of, key, edit, Fixtures.scopes());
    }

    private void open(long openSeq, String... names) throws IOException {
      open(region, openSeq, names);
    }

    private void open(RegionInfo of, long openSeq, String... names) throws IOException {
      append(of, openSeq + 1, event(of, EventType.REGION_OPEN, openSeq, files(names)));
    }

    private void flush(long seq, String name) throws IOException {
      append(region, seq, WALEdit.createFlushWALEdit(region,
          ProtobufUtil.toFlushDescriptor(FlushAction.COMMIT_FLUSH, region, seq - 1, files(name))));
    }

    private void compact(long seq, List<String> inputs, String... outputs) throws IOException {
      append(region, seq, WALEdit.createCompaction(region, ProtobufUtil.toCompactionDescriptor(region,
          Fixtures.GLOBAL, paths(inputs.toArray(new String[0])), paths(outputs), new Path("/g"))));
    }

    private void load(long seq, String name, String... clusterIds) throws IOException {
      append(region, seq, Fixtures.bulkLoad(region, files(name), List.of(clusterIds), true));
    }

    /** HBase has cleared its lists of files by then. */
    private void close(long seq) throws IOException {
      append(region, seq, event(region, EventType.REGION_CLOSE, seq - 1, files()));
    }

    private List<Change> pending() {
      List<Change> changes = content.dirty();
      content.marked().values().forEach(changes::addAll);
      return changes;
    }

    private void write() throws IOException {
      List<Change> changes = new ArrayList<>(facts.dirty());
      changes.addAll(content.urgent());
      content.marked().values().forEach(changes::addAll);
      for (Change change : changes) {
        store.put(List.of(change.row));
        change.stored();
      }
    }

    private void join() throws IOException {
      clock.addAndGet(10_000);
      write();
      joiner.step(store);
    }
  }

  private static WALEdit event(RegionInfo of, EventType type, long seq, Map<byte[], List<Path>> files) {
    return WALEdit.createRegionEventWALEdit(of, ProtobufUtil.toRegionEventDescriptor(type, of, seq, NAME, files));
  }

  private static NavigableMap<byte[], List<Path>> files(String... names) {
    NavigableMap<byte[], List<Path>> files = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    files.put(Fixtures.GLOBAL, paths(names));
    return files;
  }

  private static List<Path> paths(String... names) {
    List<Path> paths = new ArrayList<>();
    for (String name : names) {
      paths.add(new Path(name));
    }
    return paths;
  }

  private List<Tenure> stored() {
    return stored(region.getEncodedName());
  }

  private List<Tenure> stored(String of) {
    List<Tenure> tenures = new ArrayList<>();
    StoredRow row = store.rows.get(FakeStore.text(OpenTenure.rowKey(of)));
    if (row != null) {
      row.values.forEach((qualifier, value) -> {
        if (OpenTenure.isQualifier(qualifier)) {
          tenures.add(Tenure.parse(value));
        }
      });
    }
    return tenures;
  }

  private Tenure only() {
    assertEquals(1, stored().size());
    return stored().get(0);
  }

  private static StoreFiles.Content content(String... names) {
    StoreFiles files = new StoreFiles();
    files.add(List.of(names));
    return files.content();
  }

  @Test
  void aTenureHasTheFilesOfItsOpeningAndOfItsEnd() throws IOException {
    here.open(10, ONE);
    here.flush(13, TWO);
    here.compact(14, List.of(ONE, TWO), THREE);
    here.load(16, "abc_SeqId_15_");
    here.close(18);
    here.write();
    Tenure tenure = only();
    assertEquals(10, tenure.open);
    assertEquals(18, tenure.seq);
    assertEquals(12, tenure.durable);
    assertEquals(1018, tenure.closed);
    assertEquals(content(ONE), tenure.before.get("g"));
    assertEquals(content(THREE, "abc_SeqId_15_"), tenure.after.get("g"));
    assertEquals(content("abc_SeqId_15_").sum, tenure.after.get("g").loaded);
    assertEquals(0, tenure.elsewhere);
  }

  private void append(long seq) {
    here.content.noteAppended(region.getEncodedName(), seq);
  }

  private void openOnASlave() throws IOException {
    here.content.followWals();
    here.open(10, ONE);
    append(12);
  }

  /** Otherwise a slave that loses the WALs of a crashed server would open the region with less, unnoticed. */
  @Test
  void aSlavesRegionHasToOpenAboveWhatWasAppendedByTheLastFlush() throws IOException {
    openOnASlave();
    here.write();
    assertEquals(0, only().durable, "nobody has asked for it: the entry may not be durable");
    here.content.noteDurable(Map.of(region.getEncodedName(), 12L));
    append(13);
    assertEquals(Set.of(region.getEncodedName()), here.content.marked().keySet(), "after its head");
    here.write();
    assertEquals(12, only().durable);
    here.content.noteDurable(here.content.appended());
    here.write();
    assertEquals(13, only().durable);
    here.content.noteDurable(here.content.appended());
    assertTrue(here.pending().isEmpty());
    here.flush(21, TWO);
    here.write();
    assertEquals(20, only().durable);
  }

  @Test
  void whatWasAppendedBelongsToTheTenureThatIsOpen() throws IOException {
    openOnASlave();
    here.close(14);
    here.content.noteDurable(here.content.appended());
    here.write();
    assertEquals(0, only().durable, "its files are known, and all that they have");
    here.open(15, ONE);
    append(17);
    Map<String, Long> before = here.content.appended();
    here.close(18);
    here.open(19, ONE);
    append(21); // before the recorder reads the close
    here.content.noteDurable(before);
    here.write();
    assertTrue(stored().stream().allMatch(tenure -> tenure.durable == 0), "17 is not of the tenure that is open");
    here.content.noteDurable(here.content.appended());
    here.write();
    assertTrue(stored().stream().anyMatch(tenure -> tenure.open == 19 && tenure.durable == 21));
  }

  /** What its WALs lost has been shipped, or is missing on the slave; each region would cost a row a flush. */
  @Test
  void aMasterDoesNotFollowItsWals() throws IOException {
    here.open(10, ONE);
    append(12);
    assertTrue(here.content.appended().isEmpty());
  }

  /** As beyond the bound of lists: without its marker, the load would look like one that a crash has hidden. */
  @Test
  void aLoadWhoseClustersAreRefusedIsInTheLedgerAllTheSame() throws IOException {
    here.open(10);
    assertThrows(RuntimeException.class, () -> here.load(13, "abc_SeqId_12_", "no cluster id"));
    here.write();
    assertEquals(content("abc_SeqId_12_").sum, only().after.get("g").loaded);
    assertFalse(here.facts.all().isEmpty());
  }

  /** A file that stayed would be a change at the next opening, and hide a load that a crash keeps from being recorded. */
  @Test
  void aFileThatIsCompactedBeforeTheMarkerOfItsFlushOrLoadIsGone() throws IOException {
    here.open(10, ONE);
    here.compact(13, List.of(ONE, TWO, "abc_SeqId_11_"), THREE);
    here.flush(14, TWO);
    here.load(15, "abc_SeqId_11_");
    here.write();
    assertEquals(content(THREE), only().after.get("g"));
    assertEquals(0, only().after.get("g").loaded);
    assertEquals(13, only().durable);
  }

  @Test
  void aMarkerAppendedAgainChangesNothing() throws IOException {
    here.open(10, ONE);
    here.open(10, ONE);
    here.compact(14, List.of(ONE), TWO);
    here.flush(13, ONE);
    here.compact(14, List.of(ONE), TWO);
    here.close(15);
    here.close(15);
    here.write();
    assertEquals(content(TWO), only().after.get("g"));
  }

  @Test
  void openingsAreWrittenAtOnceAndMarkersAfterHeads() throws IOException {
    here.open(10, ONE);
    assertEquals(1, here.content.urgent().size());
    here.write();
    assertTrue(here.content.marked().isEmpty());
    here.flush(13, TWO);
    assertTrue(here.content.urgent().isEmpty());
    assertEquals(Set.of(region.getEncodedName()), here.content.marked().keySet());
    here.close(15);
    here.open(16, TWO);
    here.flush(18, THREE);
    assertTrue(here.content.dirty().isEmpty());
    assertEquals(2, here.content.marked().get(region.getEncodedName()).size());
    here.write();
    assertTrue(here.content.marked().isEmpty());
    here.content.forgetFlushes();
    assertTrue(here.content.urgent().isEmpty());
    assertEquals(1, here.content.marked().size(), "the table lacks its heads, too");
  }

  private long timestamp() {
    return here.pending().get(0).row.columns().get(0).timestamp;
  }

  /** Written twice, because the answer to the first was lost, it must not come back once it has been taken over. */
  @Test
  void timestampsGrowWithEachChangeAndOnlyThen() throws IOException {
    here.open(10, ONE);
    long first = timestamp();
    clock.set(9_000);
    assertEquals(first, timestamp());
    clock.set(4_000);
    here.close(12);
    assertEquals(first + 1, timestamp());
  }

  @Test
  void whoOpensNextTakesOverWhatJoins() throws IOException {
    here.open(10, ONE);
    here.flush(13, TWO);
    here.close(14);
    there.open(15, ONE, TWO);
    there.join();
    assertEquals(15, only().open, "the server before is late");
    here.write();
    assertEquals(2, stored().size());
    there.join();
    assertEquals(10, only().open);
    assertEquals(1011, only().began);
    assertEquals(16, only().seq);
    assertEquals(content(ONE), only().before.get("g"));
    there.close(20);
    here.open(21, ONE, TWO);
    there.write();
    here.join();
    assertEquals(10, only().open);
    assertEquals(content(ONE, TWO), only().after.get("g"));
  }

  private void look(Server at, long openSeq, int versions) {
    look(at, openSeq, versions, Map.of());
  }

  /** @param loaded by name, whether HBase has each store file of the open region from a bulk load */
  private void look(Server at, long openSeq, int versions, Map<String, Boolean> loaded) {
    ColumnFamilyDescriptor family =
        ColumnFamilyDescriptorBuilder.newBuilder(Fixtures.GLOBAL).setMaxVersions(versions).build();
    TableDescriptor table = TableDescriptorBuilder.newBuilder(region.getTable()).setColumnFamily(family).build();
    at.content.readMarkers(); // as the recorder does
    at.content.look(List.of(new TableEvents.OpenRegion(region.getEncodedName(), "t", openSeq, Map.of(), 0,
        table, () -> Map.of("g", loaded), clock.get())));
  }

  /** As with the store file tracker FILE. A crash keeps a load from being recorded, and its file has a plain name. */
  @Test
  void aLoadedFileWithAPlainNameCountsAsLoadedWhereItsRegionOpens() throws IOException {
    look(here, 0, 1);
    here.open(10, ONE, TWO, "abc_SeqId_4_", "t=" + PARENT + "-" + THREE);
    look(here, 10, 1, Map.of(ONE, true, TWO, false, "t=" + PARENT + "-" + THREE, true));
    here.write();
    assertEquals(content(ONE).sum + content("abc_SeqId_4_").sum, only().before.get("g").loaded);
    assertEquals(only().before.get("g").loaded, only().after.get("g").loaded);
    assertEquals(1, only().before.get("g").links);
  }

  /** Otherwise a crash would make a load that was recorded look like one that was not. */
  @Test
  void aRecordedLoadAndTheFileOfTheNextOpeningAreTheSame() throws IOException {
    look(here, 0, 1);
    here.open(10);
    here.load(13, ONE);
    here.write();
    long recorded = only().after.get("g").loaded;
    assertEquals(content(ONE).sum, recorded);
    here.open(20, ONE);
    look(here, 20, 1, Map.of(ONE, true));
    here.write();
    assertTrue(stored().stream().anyMatch(tenure -> tenure.open == 20 && tenure.before.get("g").loaded == recorded));
  }

  @Test
  void aFileOfTheOpeningIsInDoubtUntilSomebodyLooksAtIt() throws IOException {
    look(here, 0, 1);
    here.open(10, ONE, TWO);
    here.write();
    assertEquals(content(ONE, TWO).sum, only().before.get("g").loaded);
    assertEquals(0, only().after.get("g").loaded, "what a later opening has is new then");
    look(here, 10, 1, Map.of(TWO, false));
    here.write();
    assertEquals(content(ONE).sum, only().before.get("g").loaded, "the region does not have it any more");
  }

  /** Opens the region on a server whose regions are looked at, and compacts all of its files before the next look. */
  private void openAndCompact(String output, String... inputs) throws IOException {
    look(here, 0, 1);
    here.open(10, inputs);
    here.compact(13, List.of(inputs), output);
  }

  @Test
  void aLookAfterACompactionFindsTheLoadedFileOfTheOpening() throws IOException {
    openAndCompact(TWO, ONE);
    look(here, 10, 1, Map.of(ONE, true, TWO, false));
    here.write();
    assertEquals(content(ONE).sum, only().before.get("g").loaded);
    assertEquals(0, only().after.get("g").loaded);
  }

  /** HBase archives the inputs of a compaction after up to two minutes, and the recorder may wait for the state table. */
  @Test
  void aCompactionBeforeTheFirstLookShowsTheFilesOfTheOpening() throws IOException {
    here.content.findFiles(name -> name.equals(region.getEncodedName()) ? Map.of("g", Map.of(ONE, true, TWO, false))
        : Map.of());
    openAndCompact(THREE, ONE, TWO);
    look(here, 10, 1, Map.of(THREE, false));
    here.write();
    assertEquals(content(ONE).sum, only().before.get("g").loaded);
    assertEquals(0, only().after.get("g").loaded);
  }

  @Test
  void aCompactionWhoseRegionCannotBeLookedAtIsRecordedNonetheless() throws IOException {
    here.content.findFiles(name -> {
      throw new IllegalStateException("closing");
    });
    openAndCompact(THREE, ONE, TWO);
    here.write();
    assertEquals(content(ONE, TWO).sum, only().before.get("g").loaded);
    assertEquals(content(THREE), only().after.get("g"));
  }

  /** Where regions cannot be listed: nobody would ever resolve a doubt. */
  @Test
  void withoutLooksTheNamesTell() throws IOException {
    here.open(10, ONE, "abc_SeqId_4_");
    here.write();
    assertEquals(content("abc_SeqId_4_").sum, only().before.get("g").loaded);
  }

  @Test
  void whatItsTableKeepsIsPartOfATenureAndWrittenAtOnce() throws IOException {
    here.open(10, ONE);
    here.write();
    look(here, 9, 1);
    assertTrue(here.content.urgent().isEmpty(), "the region as it was open before");
    look(here, 10, 3);
    assertEquals(1, here.content.urgent().size());
    look(here, 10, 1);
    here.write();
    assertEquals("{\"g\":[3,0,2147483647,0,0,1,0]}", only().kept);
    assertTrue(here.content.urgent().isEmpty());
  }

  @Test
  void aTenureWaitsUntilItIsKnownWhatItsTableKeepsAndJoinsOnlyOneThatKeptTheSame() throws IOException {
    look(there, 0, 1);
    here.open(10, ONE);
    look(here, 10, 1);
    here.close(14);
    here.write();
    there.open(15, ONE);
    there.join();
    assertEquals(2, stored().size());
    look(there, 15, 1);
    there.join();
    assertEquals(10, only().open);
    there.close(17);
    there.write();
    here.open(18, ONE);
    look(here, 18, 3);
    here.join();
    assertEquals(2, stored().size(), "for the tool to judge");
  }

  /** As after a snapshot was restored, and as after a failed opening in between. */
  @Test
  void whatDoesNotJoinStays() throws IOException {
    here.open(10, ONE);
    here.flush(13, TWO);
    here.close(14);
    here.write();
    there.open(15, ONE);
    there.join();
    assertEquals(2, stored().size());
    there.close(17);
    there.write();
    here.open(19, ONE);
    here.join();
    assertEquals(3, stored().size());
  }

  /** The next one opens with the same sequence id, if nothing was written. */
  @Test
  void aServerThatCrashedInBetweenIsNotPassedOver() throws IOException {
    here.open(10, ONE);
    here.close(14);
    here.write();
    Server crashed = new Server("crashed,16020,1700000000002");
    crashed.append(region, 17, event(region, EventType.REGION_OPEN, 15, files(ONE)));
    crashed.write();
    there.open(15, ONE);
    there.join();
    assertEquals(3, stored().size());
  }

  @Test
  void whatWasTakenOverAlreadyIsTakenAwayShouldTheAnswerHaveBeenLost() throws IOException {
    here.open(10, ONE);
    here.close(14);
    here.write();
    there.open(15, ONE);
    store.refusing = true;
    clock.addAndGet(10_000);
    there.write();
    assertThrows(IOException.class, () -> there.joiner.step(store));
    store.refusing = false;
    for (Change change : there.pending()) {
      store.put(List.of(change.row));
      change.stored();
    }
    assertEquals(2, stored().size());
    assertTrue(stored().get(0).hasTheBeginningOf(stored().get(1)));
    there.join();
    assertEquals(16, only().seq);
  }

  @Test
  void linksIntoAnotherTableOrToItsOwnFilesAreFromElsewhere() throws IOException {
    here.open(10, "t=" + PARENT + "-" + ONE);
    here.write();
    assertEquals(0, only().elsewhere, "of the parent in the same table");
    here.open(20, "source=" + PARENT + "-" + ONE);
    assertEquals(1021, Tenure.parse(here.content.urgent().get(0).row.columns().get(0).value).elsewhere);
    assertTrue(StoreFileName.isFromElsewhere("t=" + region.getEncodedName() + "-" + ONE, region));
    assertTrue(StoreFileName.isFromElsewhere("ns=t=" + PARENT + "-" + ONE, region));
    assertTrue(StoreFileName.isFromElsewhere("source=" + PARENT + "-" + ONE + "." + PARENT, region));
    RegionInfo spaced = RegionInfoBuilder.newBuilder(TableName.valueOf("ns", "t")).build();
    assertFalse(StoreFileName.isFromElsewhere("ns=t=" + PARENT + "-" + ONE, spaced));
  }

  @Test
  void aDaughterOfAClonedRegionIsNot() throws IOException {
    here.open(10, "source=" + PARENT + "-" + ONE);
    here.write();
    here.facts.child(region.getEncodedName(), "t", 1_000);
    here.join();
    here.write();
    for (Change change : here.pending()) {
      store.put(List.of(change.row));
    }
    assertEquals(0, only().elsewhere);
  }

  @Test
  void aRegionThatNobodyIsKnownToHaveHadBeforeBeginsUnseen() throws IOException {
    here.open(2);
    here.write();
    assertEquals(0, only().unseen, "it is new");
    here.close(5);
    here.write();
    there.open(6);
    there.write();
    assertTrue(stored().stream().anyMatch(tenure -> tenure.unseen > 0), "until it is joined");
    there.join();
    there.write();
    assertEquals(0, only().unseen);
  }

  @Test
  void anEmptyRegionOfAnOldSnapshotBeginsUnseen() throws IOException {
    RegionInfo old = RegionInfoBuilder.newBuilder(region.getTable()).setRegionId(-60_000).build();
    here.open(old, 2);
    here.write();
    assertEquals(1_003, stored(old.getEncodedName()).get(0).unseen);
  }

  @Test
  void aRegionIsBornThoughItIsOpenedAnewBeforeAnybodyLooks() throws IOException {
    here.open(TableEvents.NEWBORN); // its table was truncated, and altered at once
    here.close(5);
    here.open(6);
    here.content.readMarkers();
    assertEquals(1, here.events.dirty().stream().filter(ContentLedgerTest::isBirth).count());
  }

  @Test
  void aLoadThatWasReplicatedIsAnArrivalAndOneOfAClientIsNone() throws IOException {
    here.open(10, ONE);
    here.load(12, TWO, new UUID(0, 1).toString());
    here.content.readMarkers();
    assertEquals(List.of(), here.events.dirty());
    here.load(13, THREE, new UUID(0, 2).toString(), new UUID(0, 1).toString());
    here.content.readMarkers();
    StateRow.Column arrived = here.events.dirty().get(0).row.columns().get(0);
    assertArrayEquals(TableEventRow.ARRIVED_MS, arrived.qualifier);
    assertEquals(TableEventRow.EARLIEST_WINS - 1_013, arrived.timestamp);
  }

  private static boolean isBirth(Change change) {
    return change.row.columns().stream().anyMatch(column -> Arrays.equals(column.qualifier, TableEventRow.BORN_MS));
  }

  @Test
  void aFirstTenureThatIsNotOfANewRegionBeginsUnseen() throws IOException {
    here.open(7);
    here.write();
    here.join();
    assertEquals(only().began, only().unseen);
    here.facts.child(region.getEncodedName(), "t", 1_000); // a split or merge of regions without store files
    here.join();
    for (Change change : here.pending()) {
      store.put(List.of(change.row));
    }
    assertEquals(0, only().unseen);
  }

  @Test
  void aDaughterWithItsParentsFilesDoesNot() throws IOException {
    RegionInfo parent = RegionInfoBuilder.newBuilder(region.getTable()).setRegionId(3).build();
    here.open(9, ONE + "." + parent.getEncodedName());
    here.write();
    assertEquals(0, only().unseen);
  }

  @Test
  void aDaughterOfASnapshotWhoseParentNobodyKnowsBeginsUnseen() throws IOException {
    here.open(9, "t=" + PARENT + "-" + ONE + "." + PARENT);
    here.facts.child(region.getEncodedName(), "t", 1_000); // as hbase:meta has it of a cloned snapshot
    here.write();
    here.join();
    here.join();
    here.write();
    assertEquals(only().began, only().unseen);
    here.join();
    here.write();
    assertEquals(only().began, only().unseen);
  }

  @Test
  void aDaughterOfASnapshotIsFromElsewhereThoughItsParentWasHereUntilItsTableWasDropped() throws IOException {
    RegionInfo parent = RegionInfoBuilder.newBuilder(region.getTable()).setRegionId(3).build();
    String name = parent.getEncodedName();
    here.open(parent, 5, ONE);
    here.write();
    there.open(9, "t=" + name + "-" + TWO + "." + name); // its parent has been split on the cluster of the snapshot
    there.join();
    there.write();
    assertEquals(only().began, only().elsewhere);
    there.facts.child(region.getEncodedName(), "t", 1_000); // a restored region may be split here as well
    there.join();
    there.join();
    there.write();
    for (Change change : there.pending()) {
      store.put(List.of(change.row));
    }
    assertEquals(0, only().elsewhere);
  }

  @Test
  void theSameWhereItMovesBeforeItsParentsAreLookedFor() throws IOException {
    String reference = "t=" + PARENT + "-" + ONE + "." + PARENT;
    there.open(9, reference);
    there.close(12);
    there.write();
    here.open(13, reference);
    for (int round = 0; round < 4; round++) {
      here.write();
      here.join();
    }
    here.write();
    assertEquals(9, only().open);
    assertTrue(only().unseen > 0);
  }

  @Test
  void aRegionOfASnapshotIsNamedThoughItIsADaughterThere() throws IOException {
    here.open(9, "t=" + region.getEncodedName() + "-" + ONE);
    here.facts.child(region.getEncodedName(), "t", 1_000);
    here.write();
    here.join();
    here.write();
    assertEquals(only().began, only().elsewhere);
  }

  @Test
  void aDaughterProvesTheSplitOfItsParent() throws IOException {
    RegionInfo parent = RegionInfoBuilder.newBuilder(region.getTable()).setRegionId(3).build();
    here.open(parent, 5, ONE);
    here.write();
    there.open(2, ONE + "." + parent.getEncodedName());
    there.join();
    there.write();
    byte[] fact = Bytes.toBytes(FactRow.TYPE + parent.getEncodedName());
    assertEquals(3, store.number(fact, FactRow.REGION_ID));
    assertEquals("split", Bytes.toString(store.value(fact, FactRow.LINEAGE)));
  }

  @Test
  void aParentThatNobodyKnowsIsNotMadeUp() throws IOException {
    there.open(2, ONE + "." + PARENT);
    there.join();
    there.write();
    assertNull(store.rows.get(FactRow.TYPE + PARENT));
  }

  @Test
  void aRegionThatOpensAfterItsSplitLivesAgainAndAMoveOfItIsNoOtherLife() throws IOException {
    here.open(5, ONE);
    here.close(8);
    here.write();
    here.facts.parent(region.getEncodedName(), "t", "split", region.getRegionId(), 1_000);
    here.write();
    there.open(9, ONE); // a snapshot from before the split was restored, and nothing had been written since
    there.joiner.noteReturns(store);
    there.join();
    long again = only().again;
    assertTrue(again > 0);
    there.close(12);
    there.write();
    here.open(13, ONE);
    here.joiner.noteReturns(store);
    here.join();
    assertEquals(again, only().again);
    assertEquals(5, only().open);
  }

  /** The region is open there, as it was closed here; its opening was asked for before the split was recorded. */
  private void recordASplitAfterTheRegionWasOpenedAgain() throws IOException {
    here.open(5, ONE);
    here.close(8);
    here.write();
    there.open(9, ONE);
    there.joiner.noteReturns(store);
    there.write();
    here.facts.parent(region.getEncodedName(), "t", "split", region.getRegionId(), 1_000);
    here.write();
  }

  @Test
  void aSplitThatIsRecordedAfterTheRegionWasOpenedAgainIsNoticedAsWell() throws IOException {
    recordASplitAfterTheRegionWasOpenedAgain();
    there.join();
    there.write();
    assertTrue(only().again > 0);
  }

  /** The heads of its region come first, with the next flush. */
  @Test
  void aMarkerThatComesWhileATenureIsJoinedIsNotWrittenWithIt() throws IOException {
    recordASplitAfterTheRegionWasOpenedAgain();
    store.beforeRows = () -> assertDoesNotThrow(() -> there.flush(12, "two"));
    there.join();
    assertTrue(stored().stream().noneMatch(tenure -> tenure.seq == 12));
    there.write();
    there.join();
    assertEquals(12, only().seq);
  }

  @Test
  void aRegionThatIsSplitWhileItsRowIsReadDoesNotLiveAgain() throws IOException {
    here.open(5, ONE);
    here.write();
    there.facts.parent(region.getEncodedName(), "t", "split", region.getRegionId(), 1_000);
    store.beforeRows = () -> assertDoesNotThrow(() -> {
      here.close(8);
      there.write();
    });
    here.joiner.noteReturns(store);
    here.write();
    assertEquals(0, only().again);
  }

  @Test
  void rowsAreNotReadForEver() throws IOException {
    here.open(10, ONE);
    Map<Integer, Integer> reads = new HashMap<>();
    for (int round = 0; round < 40; round++) {
      int before = store.gets;
      clock.addAndGet(100_000_000);
      here.join();
      reads.merge(store.gets - before, 1, Integer::sum);
    }
    assertEquals(6, reads.get(1));
    assertEquals(34, reads.get(0));
  }

  @Test
  void onlyFirstReplicasOfUserTablesAreKept() throws IOException {
    RegionInfo replica = RegionInfoBuilder.newBuilder(region.getTable()).setReplicaId(1).build();
    for (RegionInfo other : List.of(Fixtures.region("hbase:acl"), Fixtures.region("replicationstate"), replica)) {
      here.open(other, 10, ONE);
    }
    assertTrue(here.content.urgent().isEmpty());
  }

  @Test
  void replicatedFamiliesAreThoseOfTheMarker() throws IOException {
    here.open(10, ONE);
    here.write();
    String json = new String(store.rows.get(FakeStore.text(OpenTenure.rowKey(region.getEncodedName())))
        .values.tailMap(Bytes.toBytes("k"), true).firstEntry().getValue());
    assertTrue(json.contains("\"r\":[\"g\"]"), json);
    assertNotNull(only().before.get("g"));
  }

  @Test
  void aTableThatLostItsRowsGetsBackWhatIsOpen() throws IOException {
    here.open(10, ONE);
    here.write();
    assertTrue(here.pending().isEmpty());
    here.content.forgetFlushes();
    assertEquals(1, here.pending().size());
  }
}
