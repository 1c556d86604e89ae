"""Other libraries' interfaces; each module needs its library, and nothing here loads one.

Import the module itself, such as `dpopt.interop.sklearn` (also `opendp`, `accounting`, `frames`);
the libraries come with the extra ``dpopt[interop]``.
"""
