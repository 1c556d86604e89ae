"""What must be so once cells of a notebook have run: one module for each, named as it is.

A notebook reads as a lesson, without checks. ``after_NAME`` is called in the notebook's kernel
after the first cell that assigns NAME, with everything that is defined by then.
"""
