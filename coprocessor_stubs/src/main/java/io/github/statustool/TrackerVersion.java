package io.github.statustool;

/** The version from the jar's manifest. */
final class TrackerVersion {
  private TrackerVersion() {}

  static String get() {
    String version = TrackerVersion.class.getPackage().getImplementationVersion();
    return version == null ? "dev" : version;
  }
}
