"""The command line: an ordinary Kafka client with verbs."""
