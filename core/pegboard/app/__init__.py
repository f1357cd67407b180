"""The public names for programs that embed an App: front ends, servers, maintenance."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.engine.asking.judgement": ("Judgement",),
        "pegboard.engine.bus": ("Subscription",),
        "pegboard.engine.input.usermessage": ("UserCall",),
        "pegboard.ids": ("IdSource",),
        "pegboard.loading.discovery": ("PluginProblem",),
        "pegboard.loading.register": ("PluginInfo",),
        "pegboard.opening.options": ("open_storage",),
        "pegboard.paths": ("UserFolders",),
        "pegboard.trust.decisions": ("Decision",),
    },
)
