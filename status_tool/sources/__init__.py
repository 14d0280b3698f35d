"""Raw answers in, rows of the one schema out: state table, `hbase:meta`, queues, files."""
