"""A private plurality of voters that are private themselves: DaRRM for more than two classes."""
