"""One file per family of Kafka messages, declared by hand."""
