"""One partition's copies. Pure."""
