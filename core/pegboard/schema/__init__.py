"""The domain's values: one frozen struct for each concept, used inside and on the wire."""
