"""Where cluster facts are kept: keys, values, revisions, watches, leases.

Nothing here knows Kafka. A *store* commits *transactions*: writes that happen all or not at all, if
all their *conditions* (this key is still at that revision) hold. Each has the next *revision*. A
*watch* gives what later transactions changed; a *lease* is a promise to be alive, and its keys go
when it ends. ``store`` is the port, ``memory`` and ``sqlite`` stand behind it, both through
``local``, which gives one process its watches and leases.
"""
