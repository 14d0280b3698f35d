"""A check to be run again and again in, one line a round, its history and the pages that it serves out."""
