# Written by `poe stubs` from the table in the module beside it.
from pegboard.files.secretfiles import may_name as may_name
from pegboard.files.secretfiles import may_read as may_read
from pegboard.policy.permissions import UNCLEAR as UNCLEAR
from pegboard.policy.permissions import deciding_rule as deciding_rule
from pegboard.policy.permissions import judge_rules as judge_rules
from pegboard.policy.permissions import matches_pattern as matches_pattern
from pegboard.policy.permissions import rules_from_config as rules_from_config
from pegboard.policy.permissions import strictest_verdict as strictest_verdict
from pegboard.processes.commandwords import may_run as may_run
from pegboard.schema.session import Ruleset as Ruleset
