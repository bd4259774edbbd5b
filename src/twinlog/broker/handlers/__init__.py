"""One file per family of requests; each function answers one API."""
