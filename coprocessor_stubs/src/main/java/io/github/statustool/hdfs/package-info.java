/** A process that the tool starts to read HDFS and key stores by Hadoop's own client; no region server loads it. */
package io.github.statustool.hdfs;
