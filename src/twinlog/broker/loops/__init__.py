"""What runs in the background, one file per loop."""
