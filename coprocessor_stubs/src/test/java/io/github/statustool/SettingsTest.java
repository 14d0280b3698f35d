package io.github.statustool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.statustool.state.Settings;
import io.github.statustool.streams.Fixtures;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.junit.jupiter.api.Test;

/** A wrong value of a setting must not end a server: HBase aborts it if a coprocessor throws. */
class SettingsTest {
  private static final List<String> NUMBERS = List.of("updatedelay", "updateperiod", "barrierpoll", "sweep",
      "newserver.grace", "writethrough.wait", "operation.timeout", "stop.closewait", "stop.flushwait", "digest.rate");
  private static final List<String> HOSTILE = List.of("", " ", "x", "-1", "0", "1e3", "99999999999999999999", "ns:name",
      "/", "a b", "\u0000");

  @Test
  void aWrongNumberIsTheDefault() {
    Settings known = new Settings(Fixtures.conf());
    for (String key : NUMBERS) {
      for (String value : HOSTILE) {
        Settings settings = new Settings(Fixtures.conf(key, value));
        assertEquals(known.updatePeriod, settings.updatePeriod, key + "=" + value);
        assertEquals(known.operationTimeout, settings.operationTimeout, key + "=" + value);
      }
    }
    assertNotNull(new Settings(Fixtures.conf("digest.enabled", "perhaps")));
  }

  @Test
  void aWrongNameIsOneLineThatNamesTheSetting() {
    String told = assertThrows(IllegalArgumentException.class, () -> new Settings(Fixtures.conf("name", "ns:name")))
        .getMessage();
    assertTrue(told.contains("hbase.replicationtable.name = \"ns:name\""), told);
    assertTrue(assertThrows(IllegalArgumentException.class, () -> new Settings(Fixtures.conf("spool.dir", "a:b/c")))
        .getMessage().contains("hbase.replicationtable.spool.dir"));
  }

  @Test
  void aTrackerWithAWrongNameIsOff() {
    for (String value : List.of("ns:name", "", "a b", "\u00e9/")) {
      Configuration conf = Fixtures.conf("name", value);
      conf.set(HConstants.HBASE_DIR, "/wrong/" + value);
      assertNull(SharedRecorders.of(conf), value);
    }
  }

  /** Its server would have a row, and the entries of the WAL whose tracker is off no head. */
  @Test
  void noTrackerIsOnOnceAnotherOneOfItsServerIsOff() {
    Configuration conf = Fixtures.conf("name", "a b");
    conf.set(HConstants.HBASE_DIR, "/wrong once");
    assertNull(SharedRecorders.of(conf));
    conf.unset("hbase.replicationtable.name");
    conf.set(HConstants.ZOOKEEPER_QUORUM, "one.more,than.before"); // the site files were read again
    assertNull(SharedRecorders.of(conf));
  }

  @Test
  void theHooksOfATrackerThatIsOffDoNothing() {
    ReplicateTimeTracker tracker = new ReplicateTimeTracker();
    tracker.preReplicateLogEntries(null);
    tracker.postReplicationSinkBatchMutate(null, null, null);
    tracker.postReplicateLogEntries(null);
    tracker.stop(null);
  }
}
