"""A history that outgrows the model's window becomes shorter."""
