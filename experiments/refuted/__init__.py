"""Published statements that are false, each with a file that `dpopt.verify` accepts alone.

A module for each paper assigns ``REFUTATIONS``; `experiments.refuted.record` says what one is.
"""
