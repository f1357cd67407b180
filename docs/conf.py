"""How Sphinx makes these pages: Markdown by MyST, looks by furo."""

project = "Pegboard"
author = "The Pegboard authors"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = project
myst_heading_anchors = 3
nitpicky = True
