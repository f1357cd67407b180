"""The loading of plugins: finding, importing, checking and registering them."""
