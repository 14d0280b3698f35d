package io.github.statustool;

/** A row that the state table does not have yet, with the action to run once it is stored there or in the spool. */
final class Change {
  final StateRow row;
  private final Runnable onStored;

  Change(StateRow row, Runnable onStored) {
    this.row = row;
    this.onStored = onStored;
  }

  void stored() {
    onStored.run();
  }
}
