"""What things are: ids, errors, epochs, bounds. Imports nothing of ours."""
