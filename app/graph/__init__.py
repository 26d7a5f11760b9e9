"""The graph's own vocabulary: names and keys, themes, communities, counts, and ranking by random walk."""
