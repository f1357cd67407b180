"""Code that several built-in plugins share; it is no promise to others."""
