package io.github.statustool;

/** The version in the jar's manifest. */
final class TrackerVersion {
  private TrackerVersion() {}

  static String get() {
    String version = TrackerVersion.class.getPackage().getImplementationVersion();
    return version == null ? "dev" : version;
  }
}
