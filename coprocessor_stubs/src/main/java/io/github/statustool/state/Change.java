package io.github.statustool.state;

import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;

/** A row that the state table does not have yet, with the action to run once it is stored there or in the spool. */
public final class Change {
  public final StateRow row;
  private final Runnable onStored;

  public Change(StateRow row, Runnable onStored) {
    this.row = row;
    this.onStored = onStored;
  }

  public void stored() {
    onStored.run();
  }

  public static List<StateRow> rows(Collection<Change> changes) {
    return changes.stream().map(change -> change.row).collect(Collectors.toList());
  }
}
