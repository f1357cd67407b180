"""The values of the domain: one frozen struct per concept, also used on the wire."""
