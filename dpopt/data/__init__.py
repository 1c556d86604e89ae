"""Reading what users bring: records to counts over a public alphabet, columns and streams."""
