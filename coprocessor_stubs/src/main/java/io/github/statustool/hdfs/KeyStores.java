package io.github.statustool.hdfs;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Prints what Java's keystores hold as PEM, for a client that cannot read them: {@code KeyStores FILE... -- KIND PREFIX
 * ...}, with KIND {@code authorities} (all trusted certificates) or {@code certificate} (the first key with its chain).
 *
 * <p>The site files say where each store is: {@code PREFIX.location} and {@code .type}, with the password in
 * {@code .password}, for the key also {@code .keypassword}, as {@link Configuration#getPassword} finds them: from a
 * credential provider, else in the clear; or in the file {@code .passwordPath}, as ZooKeeper has it.
 */
public final class KeyStores {
  private static final Base64.Encoder LINES = Base64.getMimeEncoder(64, new byte[] {'\n'});

  private final Configuration site;

  private KeyStores(Configuration site) {
    this.site = site;
  }

  public static void main(String[] arguments) {
    try {
      List<String> all = Arrays.asList(arguments);
      int end = all.indexOf("--");
      Configuration site = new Configuration(false);
      all.subList(0, end).forEach(file -> site.addResource(new Path(Paths.get(file).toUri())));
      StringBuilder found = new StringBuilder();
      for (int at = end + 1; at + 1 < all.size(); at += 2) {
        found.append("== ").append(all.get(at)).append('\n');
        found.append(new KeyStores(site).pem(all.get(at), all.get(at + 1)));
      }
      System.out.write(found.toString().getBytes(StandardCharsets.US_ASCII));
      System.out.flush();
    } catch (IOException | GeneralSecurityException | RuntimeException error) {
      String why = error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage();
      System.err.println(why.lines().findFirst().orElse(""));
      System.exit(1);
    }
  }

  private String pem(String kind, String prefix) throws IOException, GeneralSecurityException {
    String location = site.get(prefix + ".location");
    KeyStore store = KeyStore.getInstance(site.get(prefix + ".type", "jks").trim());
    char[] password = password(prefix);
    try (InputStream file = Files.newInputStream(Paths.get(location.trim()))) {
      store.load(file, password);
    } catch (IOException error) {
      throw new IOException(location + ": " + error, error);
    }
    return kind.equals("authorities") ? authorities(store, location) : certificate(store, prefix, location, password);
  }

  private char[] password(String prefix) throws IOException {
    char[] known = site.getPassword(prefix + ".password");
    String file = site.get(prefix + ".passwordPath");
    if (known == null && file != null) {
      return new String(Files.readAllBytes(Paths.get(file.trim())), StandardCharsets.UTF_8).trim().toCharArray();
    }
    return known;
  }

  private static String authorities(KeyStore store, String location) throws IOException, GeneralSecurityException {
    StringBuilder text = new StringBuilder();
    for (String alias : Collections.list(store.aliases())) {
      if (store.isCertificateEntry(alias)) {
        text.append(block("CERTIFICATE", store.getCertificate(alias).getEncoded()));
      }
    }
    if (text.length() == 0) {
      throw new IOException(location + " holds no trusted certificate");
    }
    return text.toString();
  }

  private String certificate(KeyStore store, String prefix, String location, char[] password)
      throws IOException, GeneralSecurityException {
    char[] own = site.getPassword(prefix + ".keypassword");
    for (String alias : Collections.list(store.aliases())) {
      if (store.isKeyEntry(alias)) {
        Key key = store.getKey(alias, own == null ? password : own);
        StringBuilder text = new StringBuilder(block("PRIVATE KEY", key.getEncoded()));
        for (Certificate one : store.getCertificateChain(alias)) {
          text.append(block("CERTIFICATE", one.getEncoded()));
        }
        return text.toString();
      }
    }
    throw new IOException(location + " holds no private key");
  }

  private static String block(String what, byte[] content) {
    return "-----BEGIN " + what + "-----\n" + LINES.encodeToString(content) + "\n-----END " + what + "-----\n";
  }
}
