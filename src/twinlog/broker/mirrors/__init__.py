"""What the mirror loops and handlers share: a mirror at work, its source, its partitions."""
