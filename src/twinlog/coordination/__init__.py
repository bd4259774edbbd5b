"""What every coordinator is: commands in, records and replies out, ``replay`` the only writer.

A *shard* holds the state of one partition of an internal topic. A *command* reads it and gives an
*outcome*: the records to write, and the reply to give once they are committed. A command that
cannot be answered yet is *parked* under a *ticket*; a later outcome answers it.
"""
