"""Row digests: what the region servers sum up of their own rows, asked for, checked and compared."""
