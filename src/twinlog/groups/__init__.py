"""Consumer groups: who is in one, who leads it, and how far it has read.

A *classic* group agrees in rebalances: every member joins, the broker picks the protocol and the
*leader*, the leader hands in everybody's assignment, and with that a new *generation* begins. The
words are Kafka's. ``shard.py`` routes a command to its group, whatever the group's kind.
"""
