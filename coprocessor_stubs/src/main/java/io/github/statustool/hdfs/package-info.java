/** A process that the tool starts to read HDFS and key stores with Hadoop's own client. No region server loads it. */
package io.github.statustool.hdfs;
