# Written by `poe stubs` from the table in the module beside it.
from pegboard.engine.asking.judgement import Judgement as Judgement
from pegboard.engine.bus import Subscription as Subscription
from pegboard.engine.input.usermessage import UserCall as UserCall
from pegboard.ids import IdSource as IdSource
from pegboard.loading.discovery import PluginProblem as PluginProblem
from pegboard.loading.register import PluginInfo as PluginInfo
from pegboard.opening.options import open_storage as open_storage
from pegboard.paths import UserFolders as UserFolders
from pegboard.trust.decisions import Decision as Decision
