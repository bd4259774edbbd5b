"""Where cluster facts are kept: keys, values, revisions, watches, leases."""
