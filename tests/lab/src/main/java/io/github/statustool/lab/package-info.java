/** The laboratory's Java side: one admin process for each cluster, driven by JSON lines. */
package io.github.statustool.lab;
