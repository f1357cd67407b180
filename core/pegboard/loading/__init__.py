"""From the sources of plugins to the register: finding, loading, checking and reporting them."""
