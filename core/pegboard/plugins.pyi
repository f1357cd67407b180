# Written by `poe stubs` from the table in the module beside it.
from pegboard.contract.plugin import Secret as Secret
from pegboard.contract.plugin import Stash as Stash
from pegboard.contract.plugin import StashKey as StashKey
from pegboard.contract.results import FoldStep as FoldStep
from pegboard.contract.results import PrefixChange as PrefixChange
from pegboard.contract.results import PrefixLoss as PrefixLoss
from pegboard.kit.pluginhttp import Http as Http
from pegboard.kit.pluginhttp import HttpResponse as HttpResponse
from pegboard.kit.privatefile import lock_file as lock_file
from pegboard.kit.privatefile import replace_file as replace_file
from pegboard.kit.redact import redact as redact
from pegboard.kit.suggestions import nearest_names as nearest_names
from pegboard.kit.threads import run_in_thread as run_in_thread
from pegboard.kit.threads import shield as shield
