"""What a comparison of plans says: rows, advice in words, and the documents that carry both."""
