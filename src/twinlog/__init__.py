"""twinlog: a Kafka broker whose partition logs are byte-for-byte twins of another cluster's."""
