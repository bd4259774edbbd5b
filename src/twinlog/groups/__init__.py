"""Consumer groups. Pure."""
