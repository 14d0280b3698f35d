package io.github.statustool.lab;

import java.io.File;
import java.util.Map;
import org.apache.kerby.KOptions;
import org.apache.kerby.kerberos.kerb.KrbException;
import org.apache.kerby.kerberos.kerb.client.KrbConfig;
import org.apache.kerby.kerberos.kerb.client.KrbOption;
import org.apache.kerby.kerberos.kerb.server.KdcConfigKey;
import org.apache.kerby.kerberos.kerb.server.SimpleKdcServer;
import org.apache.kerby.kerberos.kerb.type.ticket.TgtTicket;

/** A Kerberos realm on loopback, and its administrator: a {@link CommandServer}. All keys are random, and in memory. */
public final class LabKdc {

  private final SimpleKdcServer kdc;

  private LabKdc(SimpleKdcServer kdc) {
    this.kdc = kdc;
  }

  /**
   * Serves until standard input ends.
   *
   * @param args the realm, the port, and a folder of its own
   */
  public static void main(String[] args) throws Exception {
    CommandServer server = CommandServer.onStandardOutput();
    SimpleKdcServer kdc = new SimpleKdcServer(new KrbConfig());
    kdc.setKdcRealm(args[0]);
    kdc.setKdcHost("127.0.0.1");
    kdc.setKdcTcpPort(Integer.parseInt(args[1]));
    kdc.setAllowUdp(false);
    kdc.setWorkDir(new File(args[2]));
    // Tickets that expire while a test waits.
    kdc.getKdcConfig().setLong(KdcConfigKey.MINIMUM_TICKET_LIFETIME, 0L);
    kdc.init();
    kdc.start();
    new LabKdc(kdc).register(server.commands);
    server.serve();
    System.exit(0);
  }

  private void register(Map<String, Command> commands) {
    commands.put("add_principal", this::addPrincipal);
    commands.put("change_key", this::changeKey);
    commands.put("remove_principal", this::removePrincipal);
    commands.put("kinit", this::kinit);
  }

  /** Adds its key to the keytab. */
  private Object addPrincipal(Args args) throws KrbException {
    kdc.createPrincipal(args.text("principal"));
    kdc.exportPrincipal(args.text("principal"), new File(args.text("keytab")));
    return null;
  }

  /** No keytab has the new one. */
  private Object changeKey(Args args) throws KrbException {
    kdc.deletePrincipal(args.text("principal"));
    kdc.createPrincipal(args.text("principal"));
    return null;
  }

  private Object removePrincipal(Args args) throws KrbException {
    kdc.deletePrincipal(args.text("principal"));
    return null;
  }

  /** Writes a ticket cache; the ticket lasts for {@code lifetime_s} seconds, a day if absent. */
  private Object kinit(Args args) throws KrbException {
    KOptions options = new KOptions();
    options.add(KrbOption.CLIENT_PRINCIPAL, args.text("principal"));
    options.add(KrbOption.USE_KEYTAB, true);
    options.add(KrbOption.KEYTAB_FILE, new File(args.text("keytab")));
    if (args.has("lifetime_s")) {
      options.add(KrbOption.LIFE_TIME, args.integer("lifetime_s"));
    }
    TgtTicket ticket = kdc.getKrbClient().requestTgt(options);
    kdc.getKrbClient().storeTicket(ticket, new File(args.text("cache")));
    return null;
  }
}
