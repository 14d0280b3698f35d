package io.github.statustool.lab;

/** What one command does; its result is turned into JSON (null when there is nothing to say). */
@FunctionalInterface
interface Command {
  Object run(Args args) throws Exception;
}
