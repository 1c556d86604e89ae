"""Speed, measured side by side in one run; never part of the default run, whose bytes repeat."""
