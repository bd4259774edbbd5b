"""Counters, gauges and log lines."""
