"""The values of Pegboard's domain: a frozen struct for each concept, also used on the wire."""
