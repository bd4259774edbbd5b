"""One partition's copies, and what their readers may see. Pure.

The *high watermark* is the first offset that is not yet on every *in-sync* copy; ``leader`` raises
it, with one copy as with many. ``visible`` says who may read how far. A *fetch session*
(``fetch_sessions``) lets a reader name its partitions once and hear only of what changed.
"""
