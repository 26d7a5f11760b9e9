"""One pipeline a module, as its framework's documentation builds it; each runs as a process in its own environment."""
