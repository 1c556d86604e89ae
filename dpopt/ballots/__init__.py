"""Ballots over C classes: votes and their counts, selection rules, and their audited tables."""
