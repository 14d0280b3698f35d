package io.github.statustool.witness;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.ipc.RpcServer;
import org.apache.hadoop.hbase.security.AccessDeniedException;
import org.apache.hadoop.hbase.security.SecurityConstants;
import org.apache.hadoop.hbase.security.Superusers;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.hbase.security.UserProvider;
import org.apache.hadoop.hbase.zookeeper.ZKAuthentication;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.UserGroupInformation.AuthenticationMethod;

/**
 * Who a witness is, and who may call it. It has no table of rights: with Kerberos its own user and HBase's superusers
 * may, without anybody.
 */
final class Access {
  /** Those of HBase 2.6; an earlier version ignores them. */
  private static final String TLS = "hbase.server.netty.tls.enabled";
  private static final String TLS_CLASS = "org.apache.hadoop.hbase.io.crypto.tls.X509Util";

  private static final String ZOOKEEPER_SASL = "zookeeper.sasl.client";
  private static final String FALLBACK = "hbase.ipc.server.fallback-to-simple-auth-allowed";
  private static final String SECURITY = "hbase.security.authentication";

  private final boolean isKerberized;

  private Access(boolean isKerberized) {
    this.isKerberized = isKerberized;
  }

  /** Lets anybody call. */
  static Access open() {
    return new Access(false);
  }

  /**
   * Logs in as the site files say. HBase's RPC server and ZooKeeper client take the identity from there.
   *
   * @param host the one that sources know the witness by, which stands for {@code _HOST}
   * @throws IOException if the witness cannot be as secure as the site files demand
   */
  static Access logIn(Configuration configuration, String host) throws IOException {
    if (configuration.getBoolean(TLS, false)) {
      demandTls(configuration);
    }
    if (!User.isHBaseSecurityEnabled(configuration)) {
      return open();
    }
    // Nobody comes without a ticket, whatever region servers allow.
    configuration.setBoolean(FALLBACK, false);
    configuration.set(CommonConfigurationKeysPublic.HADOOP_SECURITY_AUTHENTICATION, "kerberos");
    UserGroupInformation.setConfiguration(configuration);
    demandKey(configuration);
    if (configuration.getBoolean(ZOOKEEPER_SASL, true)) {
      logInAtZooKeeper(configuration, host);
    }
    UserProvider.instantiate(configuration)
        .login(SecurityConstants.REGIONSERVER_KRB_KEYTAB_FILE, SecurityConstants.REGIONSERVER_KRB_PRINCIPAL, host);
    UserGroupInformation own = UserGroupInformation.getLoginUser();
    if (own.getUserName().split("[/@]").length != 3) {
      throw new IOException(own.getUserName() + " is no service's principal: give one as the master's"
          + " hbase.regionserver.kerberos.principal has it, such as hbase/" + host + "@REALM");
    }
    Superusers.initialize(configuration);
    return new Access(true);
  }

  /** Reads the keystores once, as HBase's RPC server does at each connection, and tells nobody but its log. */
  private static void demandTls(Configuration configuration) throws IOException {
    try {
      Class.forName(TLS_CLASS).getMethod("createSslContextForServer", Configuration.class).invoke(null, configuration);
    } catch (InvocationTargetException error) {
      throw new IOException(TLS + " is true, and hbase.rpc.tls.* does not make a TLS server: "
          + error.getCause().getMessage(), error);
    } catch (ReflectiveOperationException error) {
      throw new IOException(TLS + " is true, and this HBase has no TLS for its RPC (2.6 has): give a later"
          + " --hbase-home, or set it to false", error);
    }
  }

  private static void demandKey(Configuration configuration) throws IOException {
    for (String key : new String[] {SecurityConstants.REGIONSERVER_KRB_PRINCIPAL,
        SecurityConstants.REGIONSERVER_KRB_KEYTAB_FILE}) {
      if (configuration.getTrimmed(key, "").isEmpty()) {
        throw new IOException(SECURITY + " is kerberos, and the site files do not set " + key
            + ": give --principal and --keytab");
      }
    }
  }

  /** Logs in with the same key, unless a JAAS configuration names another. */
  private static void logInAtZooKeeper(Configuration configuration, String host) throws IOException {
    String keytab = configuration.get(SecurityConstants.REGIONSERVER_KRB_KEYTAB_FILE);
    String principal = configuration.get(SecurityConstants.REGIONSERVER_KRB_PRINCIPAL);
    configuration.set(HConstants.ZK_CLIENT_KEYTAB_FILE, keytab);
    configuration.set(HConstants.ZK_CLIENT_KERBEROS_PRINCIPAL, principal);
    ZKAuthentication.loginClient(configuration, HConstants.ZK_CLIENT_KEYTAB_FILE,
        HConstants.ZK_CLIENT_KERBEROS_PRINCIPAL, host);
  }

  /**
   * Refuses the caller of the current call unless it may.
   *
   * @throws AccessDeniedException also for somebody who acts for another user
   */
  void check() throws AccessDeniedException {
    if (isKerberized) {
      check(RpcServer.getRequestUser().orElse(null));
    }
  }

  private static void check(User user) throws AccessDeniedException {
    // HBase lets any user act for any other where hadoop.security.authorization is not set.
    boolean isItself = user != null
        && user.getUGI().getRealUser() == null
        && user.getUGI().getAuthenticationMethod() == AuthenticationMethod.KERBEROS;
    if (!isItself || !Superusers.isSuperUser(user)) {
      throw new AccessDeniedException((user == null ? "nobody" : user.getName())
          + " may not call a witness: its own user and those of hbase.superuser in its site files may");
    }
  }
}
