"""One cluster followed from another (KIP-1279). Pure."""
