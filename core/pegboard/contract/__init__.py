"""The contract with plugins: hooks, tools, contexts and values.

A plugin is a module or object with functions that are named after hooks and marked `@hookimpl`. A
function takes only the arguments that it wants. An `async` function runs on the event loop, a plain
one in a worker thread, for five seconds unless the configuration or `@hookimpl(timeout_s=...)` sets
another limit.

The kind of a hook says how the answers of several plugins combine:

- `collect`: the answers of all plugins, oldest first, in one list.
- `fold`: each plugin gets the value that the one before returned; `None` leaves it unchanged.
- `first`: the newest plugin is asked first; the first answer that is not `None` counts.
- `strictest`: all are asked; deny beats ask beats allow; `None` is no opinion.
- `notify`: all are called in order, each at its own pace, and the engine does not wait.

Oldest to newest: built-in plugins, installed ones by name, the user's, the project's.

Values are frozen. To change one, return another: `evolve(value, field=...)`.
"""
