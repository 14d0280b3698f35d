"""A live cluster in, a snapshot or a document out: one side, its queues, its peers, its drift."""
