"""What the paper on smoothed differential privacy says, as exact numbers, sums and programs."""
