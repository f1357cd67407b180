"""The web view: sessions, changes, requests, costs and plugins on pages in a browser.

The server serves its pages. Before a server starts, only the hooks are loaded.
"""

from types import ModuleType

from pegboard import hookimpl
from pegboard_plugins.web import hookspecs
from pegboard_plugins.web.hookspecs import WebPage as WebPage
from pegboard_plugins.web.hookspecs import WebPanel as WebPanel
from pegboard_plugins.web.hookspecs import web_pages as web_pages
from pegboard_plugins.web.hookspecs import web_panels as web_panels


@hookimpl
def register_hooks() -> tuple[ModuleType, ...]:
    """Return the module with the hooks for pages and panels of plugins."""
    return (hookspecs,)


@hookimpl(optionalhook=True)
def register_routes() -> tuple[object, ...]:
    """Return the HTTP routes of the web pages' files, and of the pages' data."""
    from pegboard_plugins.web import datasets, shell  # FastAPI, which only a server needs

    return shell.routes, datasets.routes
