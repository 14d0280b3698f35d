package io.github.statustool.witness;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Paths;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.ipc.FifoRpcScheduler;
import org.apache.hadoop.hbase.ipc.NettyRpcServer;
import org.apache.hadoop.hbase.ipc.RpcServer;
import org.apache.hadoop.hbase.ipc.RpcServer.BlockingServiceAndInterface;
import org.apache.hadoop.hbase.security.SecurityConstants;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos.AdminService;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ClientService;

/**
 * A process to which a master replicates as to a cluster, and which keeps only what it was sent, not its content: {@code
 * Witness CLUSTER_KEY HOST PORT FOLDER [PRINCIPAL KEYTAB]}. Ends with SIGTERM (143), or with 2 and one line that says why.
 */
public final class Witness {
  private static final int HANDLERS = 10;
  private static final int KEY_ARGUMENTS = 4;

  private final Configuration configuration;
  private final ServerName server;
  private final ArrivalStore store;
  private final RpcServer rpc;
  private volatile Registration registration;
  private volatile boolean ending;
  private volatile CountDownLatch lost = new CountDownLatch(1);

  private Witness(Configuration configuration, InetSocketAddress address, Access access, ArrivalStore store)
      throws IOException {
    this.configuration = configuration;
    this.store = store;
    server = ServerName.valueOf(address.getHostString(), address.getPort(), System.currentTimeMillis());
    WitnessService service = new WitnessService(store, server, access, this::acknowledge, this::broken);
    rpc = listen(service, new FolderService(store, access), address, configuration);
  }

  private static RpcServer listen(WitnessService witness, FolderService folder, InetSocketAddress address,
      Configuration configuration) throws IOException {
    List<BlockingServiceAndInterface> served =
        List.of(
            new BlockingServiceAndInterface(
                AdminService.newReflectiveBlockingService(witness.asService()), AdminService.BlockingInterface.class),
            new BlockingServiceAndInterface(
                ClientService.newReflectiveBlockingService(folder.asService()), ClientService.BlockingInterface.class));
    // Handlers that wait for the disk fill its bounded queue; what comes then is refused, and sent again.
    FifoRpcScheduler scheduler = new FifoRpcScheduler(configuration, HANDLERS);
    try {
      return new NettyRpcServer(null, "witness", served, address, configuration, scheduler, false);
    } catch (Exception error) { // Netty throws what its transport says, declared or not
      throw new IOException("cannot listen at " + address.getHostString() + ":" + address.getPort() + ": " + reason(error),
          error);
    }
  }

  public static void main(String[] arguments) {
    try {
      Configuration configuration = HBaseConfiguration.createClusterConf(HBaseConfiguration.create(), arguments[0]);
      if (arguments.length > KEY_ARGUMENTS) {
        if (!User.isHBaseSecurityEnabled(configuration)) {
          throw new IOException("--principal is given, and the site files do not set hbase.security.authentication to"
              + " kerberos: it would let anybody call; --conf-dir DIR names others");
        }
        configuration.set(SecurityConstants.REGIONSERVER_KRB_PRINCIPAL, arguments[KEY_ARGUMENTS]);
        configuration.set(SecurityConstants.REGIONSERVER_KRB_KEYTAB_FILE, arguments[KEY_ARGUMENTS + 1]);
      }
      configuration.setIfUnset(HConstants.ZK_SESSION_TIMEOUT, "30000");
      InetSocketAddress address = new InetSocketAddress(arguments[1], Integer.parseInt(arguments[2]));
      if (address.isUnresolved()) {
        throw new IOException("the host " + arguments[1] + " is not known");
      }
      Access access = Access.logIn(configuration, arguments[1]);
      ArrivalStore store = new ArrivalStore(Paths.get(arguments[3]), ArrivalStore.LOG_ENTRIES);
      new Witness(configuration, address, access, store).serve(arguments[0]);
    } catch (IOException | RuntimeException error) {
      fail(reason(error));
    } catch (InterruptedException error) {
      fail("interrupted");
    }
  }

  private void serve(String clusterKey) throws IOException, InterruptedException {
    rpc.start();
    register();
    Runtime.getRuntime().addShutdownHook(new Thread(this::end, "witness-end"));
    System.out.printf(
        "witness %s takes part as a peer; on the master: add_peer 'witness', CLUSTER_KEY => '%s'%n",
        server.getAddress(), clusterKey);
    while (true) {
      lost.await();
      // Its session is gone: no source finds it until it is registered again.
      registration.close();
      register();
    }
  }

  private void register() throws IOException {
    lost = new CountDownLatch(1);
    CountDownLatch mine = lost;
    registration = new Registration(configuration, server, store, registration, mine::countDown);
  }

  private void acknowledge(StorePosition position) throws IOException {
    Registration now = registration;
    if (now == null) {
      throw new IOException("the witness is not registered yet");
    }
    try {
      now.acknowledge(position);
    } catch (Registration.TakenOverException error) {
      broken(error);
      throw error;
    }
  }

  private void broken(IOException error) {
    if (!ending) {
      fail("it cannot keep what it is sent: " + reason(error));
    }
  }

  private void end() {
    ending = true;
    registration.close();
    rpc.stop();
    try {
      store.close();
    } catch (IOException error) {
      // What was acknowledged is on disk.
    }
  }

  private static String reason(Throwable error) {
    if (error instanceof FileAlreadyExistsException) {
      return ((FileSystemException) error).getFile() + " is no folder";
    }
    if (error instanceof FileSystemException) {
      FileSystemException failed = (FileSystemException) error;
      String why = failed.getReason();
      return failed.getFile() + ": " + (why == null ? failed.getClass().getSimpleName() : why);
    }
    return error.getMessage() == null ? error.toString() : error.getMessage();
  }

  /** Ends the process at once: what was acknowledged is on disk, and the session's end deregisters. */
  private static void fail(String why) {
    System.err.println("status-tool: the witness ends: " + why.lines().findFirst().orElse(""));
    Runtime.getRuntime().halt(2);
  }
}
