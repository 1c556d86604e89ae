"""Private votes of real ensembles: ways of choosing a label, at equal budgets, on real data."""
