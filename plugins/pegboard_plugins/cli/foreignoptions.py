"""Options of other agents' commands, with their replacement in `pegboard run`."""

PRINT = frozenset({"-p", "--print"})
"""Options without an effect: a run always prints its answer and ends."""

ALIASES = {
    "-r": "--session",
    **dict.fromkeys(("--no-session-persistence", "--ephemeral"), "--no-save"),
    "--fork-session": "--fork",
    "--schema": "--json-schema",
    "--max-budget-usd": "--budget-usd",
    "--max-turns": "--max-steps",
    "--append-system-prompt": "--append-system",
    "--config": "--set",
    "--output-last-message": "--output",
    **dict.fromkeys(("--allowedTools", "--allowed-tools"), "--allow"),
    **dict.fromkeys(("--disallowedTools", "--disallowed-tools"), "--deny"),
}
"""Options that `pegboard run` has under another name."""

_AUTO = "`--auto` allows what would be asked; denied calls stay denied, and `--sandbox` stays"
_FORMAT = "`--format json` prints one JSON record per line, `--format result` the last one alone"
_RESUME = "`-c` continues the last session, `-s ID` another one"
_PROMPT = "`--append-system TEXT`, or `agent.NAME.prompt` of the configuration with `--agent NAME`"
_FOLDERS = "`-C DIRECTORY` before `run`; `permission.external_directory` allows other folders"
_CONFIG = "`--set KEY=VALUE`, and `--profile NAME` for more settings"
_SERVERS = "`mcp` of the configuration has the servers"
FOREIGN: dict[str, str] = {
    "--permission-mode": (
        "`--mode` says what runs before you are asked; plan is `--agent plan` or `--mode plan`,"
        " acceptEdits is `--mode accept-edits`, bypassPermissions is `--auto`"
    ),
    "--permission-prompts": "without a terminal, what would be asked is denied",
    **dict.fromkeys(
        (
            "--dangerously-skip-permissions",
            "--allow-dangerously-skip-permissions",
            "--dangerously-bypass-approvals-and-sandbox",
            "--full-auto",
            "--yolo",
            "-y",
        ),
        _AUTO,
    ),
    **dict.fromkeys(("--ask-for-approval", "-a", "--approval-mode"), "`--mode`, or `--auto`"),
    **dict.fromkeys(("--output-format", "--input-format", "--json", "--verbose"), _FORMAT),
    **dict.fromkeys(("--include-partial-messages", "--replay-user-messages"), _FORMAT),
    **dict.fromkeys(("--session-id", "--last", "--list-sessions"), _RESUME),
    **dict.fromkeys(("--system-prompt", "--prompt"), _PROMPT),
    **dict.fromkeys(("--add-dir", "--include-directories", "--cd", "-C"), _FOLDERS),
    **dict.fromkeys(("--settings", "--setting-sources"), _CONFIG),
    **dict.fromkeys(
        ("--mcp-config", "--strict-mcp-config", "--allowed-mcp-server-names"), _SERVERS
    ),
    **dict.fromkeys(
        ("--enable", "--disable"), "`--set plugins.NAME.enabled=false` leaves a plugin out"
    ),
    "--disable-slash-commands": "`--` before the message sends it as text",
    "--prompt-interactive": "`pegboard MESSAGE`, without `run`, begins a chat with it",
    "--effort": "`--variant NAME`",
    "--fallback-model": "`fallback` of the configuration",
    "--image": "`-f FILE`",
    "-i": "`-f FILE`",
    "--agents": "`agent` of the configuration, and files in `.claude/agents`",
    **dict.fromkeys(
        ("--oss", "--local-provider"),
        "`-m PROVIDER/MODEL` names a model of a server on this machine as well",
    ),
    "--skip-git-repo-check": "it is not needed: a folder without git works",
    "--plugin-dir": "`pegboard plugins bundle add FOLDER` installs a plugin's folder",
    **dict.fromkeys(
        ("--extensions", "-e"), "`pegboard plugins bundle list` lists what is installed"
    ),
}
"""By option what takes its place."""

SANDBOXES = {"read-only": "strict", "workspace-write": "workspace", "danger-full-access": "off"}
"""By value of `-s`, which is the sandbox in Codex and a session here, the level of `--sandbox`."""
