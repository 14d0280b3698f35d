/**
 * The state table: names of rows and columns, a store whose calls are bounded in time, and the spool beside it.
 *
 * <p>{@link io.github.statustool.state.StateTable} has the names, {@link io.github.statustool.state.StateStore} the
 * calls. Settings, ids and health live here too, because every row needs them.
 */
package io.github.statustool.state;
