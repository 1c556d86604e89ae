"""Counting records over a public alphabet: sequences, arrays, and columns of files."""
