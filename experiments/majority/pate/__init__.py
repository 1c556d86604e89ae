"""PATE with private teachers (section 6.2 of the DaRRM paper): votes, Tables 1, 6, 8 and 10."""
