"""What programs need that open Apps and show them: front ends, servers, maintenance."""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard.config.configuration import check_config as check_config
    from pegboard.config.configuration import load_config as load_config
    from pegboard.config.layer import config_text as config_text
    from pegboard.config.layer import json_config as json_config
    from pegboard.config.layer import read_layer as read_layer
    from pegboard.config.project import redirections as redirections
    from pegboard.config.project import shown_before as shown_before
    from pegboard.contract.toolhooks import render_tool as render_tool
    from pegboard.contract.tools import serving as serving
    from pegboard.engine.asking.judgement import Judgement as Judgement
    from pegboard.engine.bus import Bus as Bus
    from pegboard.engine.bus import Subscription as Subscription
    from pegboard.engine.input.usermessage import CallOrder as CallOrder
    from pegboard.engine.toolresult import remove_old_outputs as remove_old_outputs
    from pegboard.hooks.callers import FoldStep as FoldStep
    from pegboard.ids import IdSource as IdSource
    from pegboard.ids import check_id as check_id
    from pegboard.kit.privatefile import USERS_ALONE as USERS_ALONE
    from pegboard.kit.privatefile import alone_with as alone_with
    from pegboard.kit.privatefile import replace_whole as replace_whole
    from pegboard.kit.privatefile import set_aside as set_aside
    from pegboard.kit.redact import secret_values as secret_values
    from pegboard.loading.discovery import Problem as Problem
    from pegboard.loading.register import PluginInfo as PluginInfo
    from pegboard.opening.options import find_plugins as find_plugins
    from pegboard.opening.options import open_storage as open_storage
    from pegboard.paths import Places as Places
    from pegboard.trust.decisions import Decision as Decision
    from pegboard.trust.decisions import TrustStore as TrustStore
    from pegboard.trust.projectcode import imported as imported
    from pegboard.trust.projectcode import imports_pegboard as imports_pegboard
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
