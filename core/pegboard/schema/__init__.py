"""The domain's values: one frozen struct per thing, defined once, used inside and on the wire."""
