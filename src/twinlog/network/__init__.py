"""Sockets: the listener, and the client side of other brokers' sockets."""
