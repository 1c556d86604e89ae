"""Private plurality of voters that are themselves private, over C classes."""
