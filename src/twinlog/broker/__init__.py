"""A broker: wires the pure folders to the disk, the network and the clock."""
