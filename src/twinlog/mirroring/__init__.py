"""One cluster followed from another (KIP-1279). Pure.

A *mirror* names a *source* cluster; its *mirror topics* here are the *destination*. What an
operator asked of a topic is its desired state, a cluster fact; where a partition really is, is its
actual state, kept by the ``MirrorShard`` of ``__mirror_state``. The leader of a partition runs one
``PartitionMirror`` for it: events in, effects out. LME is the last mirror epoch: the latest leader
epoch that came from the source before a stop, kept with the log end it had then.
"""
