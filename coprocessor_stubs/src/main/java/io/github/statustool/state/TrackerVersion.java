package io.github.statustool.state;

/** The version from the jar's manifest. */
public final class TrackerVersion {
  private TrackerVersion() {}

  public static String get() {
    String version = TrackerVersion.class.getPackage().getImplementationVersion();
    return version == null ? "dev" : version;
  }
}
