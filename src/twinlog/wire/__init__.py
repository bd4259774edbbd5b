"""Bytes to messages and back. Pure."""
