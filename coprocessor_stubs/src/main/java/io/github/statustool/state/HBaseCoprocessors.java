package io.github.statustool.state;

import java.util.Set;

/**
 * The coprocessors of HBase that neither drop nor change replicated cells. Others are named to the tool, also those in
 * HBase's package: some of its examples drop cells ({@code ZooKeeperScanPolicyObserver}, {@code WriteSinkCoprocessor}),
 * and Phoenix has classes there. The tool has the same list (table_files.py).
 */
public final class HBaseCoprocessors {
  private static final Set<String> HARMLESS = Set.of(
      "org.apache.hadoop.hbase.JMXListener",
      "org.apache.hadoop.hbase.backup.BackupObserver",
      "org.apache.hadoop.hbase.constraint.ConstraintProcessor", // refuses a write with an exception
      "org.apache.hadoop.hbase.coprocessor.AggregateImplementation",
      "org.apache.hadoop.hbase.coprocessor.BaseRowProcessorEndpoint",
      "org.apache.hadoop.hbase.coprocessor.Export",
      "org.apache.hadoop.hbase.coprocessor.MetaTableMetrics",
      "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint",
      "org.apache.hadoop.hbase.quotas.MasterQuotasObserver",
      "org.apache.hadoop.hbase.replication.regionserver.ReplicationObserver",
      "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint",
      "org.apache.hadoop.hbase.security.access.AccessController",
      "org.apache.hadoop.hbase.security.access.CoprocessorWhitelistMasterObserver",
      "org.apache.hadoop.hbase.security.access.SecureBulkLoadEndpoint",
      "org.apache.hadoop.hbase.security.access.SnapshotScannerHDFSAclController",
      "org.apache.hadoop.hbase.security.token.TokenProvider",
      // These two change tags alone, and the tool compares servers by whether they heed labels (ServerSettings.LABELS).
      "org.apache.hadoop.hbase.security.visibility.VisibilityController",
      "org.apache.hadoop.hbase.security.visibility.VisibilityReplication");

  private HBaseCoprocessors() {}

  public static boolean isHarmless(String className) {
    return HARMLESS.contains(className);
  }
}
