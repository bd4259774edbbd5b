"""The facts all brokers agree on, and who may change them. Pure.

*Facts* (``facts``) make an *image* (``image``): brokers, topics, mirrors at one moment, never
changed in place. A *rule* (``topics``, ``configs``, ``mirrors``, ``elections``) takes an image and
a wish and gives *changes* (``changes``) or ApiError. ``records`` turns changes into keys and values
of the metadata store and back. What a mirror topic is *desired* to do is a fact here; where its
partitions really are is known to ``mirroring``.
"""
