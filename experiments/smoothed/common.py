"""What the experiments on smoothed differential privacy share."""

PAPER = "Smoothed Differential Privacy"
