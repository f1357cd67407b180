"""What tools that touch files, programs and the web, and what serves runs, need of the core."""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard.contract.context import FileAccess as FileAccess
    from pegboard.contract.context import FileLedger as FileLedger
    from pegboard.contract.context import named_path as named_path
    from pegboard.contract.plugin import Secret as Secret
    from pegboard.contract.plugin import Stash as Stash
    from pegboard.contract.plugin import StashKey as StashKey
    from pegboard.contract.results import DISPLAY as DISPLAY
    from pegboard.contract.results import Block as Block
    from pegboard.contract.results import Span as Span
    from pegboard.contract.results import SpanLine as SpanLine
    from pegboard.contract.results import SpanStyle as SpanStyle
    from pegboard.kit.hosts import Network as Network
    from pegboard.kit.hosts import host_pattern as host_pattern
    from pegboard.kit.hosts import ip_address_of as ip_address_of
    from pegboard.kit.hosts import is_literal as is_literal
    from pegboard.kit.hosts import is_loopback as is_loopback
    from pegboard.kit.hosts import known_host as known_host
    from pegboard.kit.hosts import split_port as split_port
    from pegboard.kit.redact import SHORTEST_VALUE as SHORTEST_VALUE
    from pegboard.kit.redact import redacted as redacted
    from pegboard.kit.redact import without_values as without_values
    from pegboard.kit.suggestions import nearest_names as nearest_names
    from pegboard.kit.threads import Threads as Threads
    from pegboard.kit.threads import closing as closing
    from pegboard.kit.threads import in_own_thread as in_own_thread
    from pegboard.kit.threads import shielded as shielded
    from pegboard.paths import resolved_path as resolved_path
    from pegboard.policy.clock import Clock as Clock
    from pegboard.policy.clock import Slots as Slots
    from pegboard.policy.clock import current_clock as current_clock
    from pegboard.policy.permissions import UNCLEAR as UNCLEAR
    from pegboard.policy.permissions import deciding as deciding
    from pegboard.policy.permissions import judge as judge
    from pegboard.policy.permissions import matches as matches
    from pegboard.policy.permissions import rules_from_config as rules_from_config
    from pegboard.policy.permissions import strictest as strictest
    from pegboard.processes import BackgroundProcess as BackgroundProcess
    from pegboard.processes import Enclosed as Enclosed
    from pegboard.processes import Encloser as Encloser
    from pegboard.processes import Enclosing as Enclosing
    from pegboard.processes import Enclosure as Enclosure
    from pegboard.processes import OpenProcesses as OpenProcesses
    from pegboard.processes import Processes as Processes
    from pegboard.processes import ProcessResult as ProcessResult
    from pegboard.processes import Site as Site
    from pegboard.providers.spending import Budget as Budget
    from pegboard.providers.spending import OpenBudget as OpenBudget
    from pegboard.providers.spending import cost_of as cost_of
    from pegboard.providers.spending import fixed_tokens as fixed_tokens
    from pegboard.providers.spending import message_tokens as message_tokens
    from pegboard.providers.spending import tokens_of as tokens_of
    from pegboard.providers.spending import total_tokens as total_tokens
    from pegboard.trust.projectcode import read_bounded as read_bounded
    from pegboard.trust.projectcode import way_down as way_down
    from pegboard.workspace import open_workspace as open_workspace
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
