"""What every coordinator is: commands in, records and a reply out. Pure."""
