"""The facts all brokers agree on, and who may change them. Pure."""
