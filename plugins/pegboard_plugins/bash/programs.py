"""Programs by what they do with other commands, as their manuals say."""

import re
from collections.abc import Mapping
from typing import NamedTuple

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash", "mksh"})
AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
CODERS = frozenset(
    {
        *("python", "pypy", "node", "nodejs", "perl", "ruby", "php", "lua", "luajit", "deno"),
        *("bun", "tclsh", "Rscript", "julia", "irb", "osascript", "pwsh", "guile", "elixir"),
    }
)
"""Interpreters, without the numbers of their versions."""
INTERPRETERS = CODERS | AWKS


class Grammar(NamedTuple):
    """The options of a program: letters, with a colon where they take a value; long names with `=`.

    `operands` are the words of its own before a command. `assigns`: so may variables.
    """

    letters: str = ""
    names: str = ""
    operands: int = 0
    assigns: bool = False


WRAPPERS: Mapping[str, Grammar] = {
    "nohup": Grammar(),
    "setsid": Grammar("cfw", "fork ctty wait"),
    "nice": Grammar("n:", "adjustment="),
    "ionice": Grammar("c:n:t", "class= classdata= ignore"),
    "timeout": Grammar("k:s:v", "foreground preserve-status verbose kill-after= signal=", 1),
    "gtimeout": Grammar("k:s:v", "foreground preserve-status kill-after= signal=", 1),
    "time": Grammar("pvo:f:a", "portability verbose output= format= append"),
    "gtime": Grammar("pvo:f:a"),
    "command": Grammar("p"),
    "builtin": Grammar(),
    "exec": Grammar("cla:"),
    "env": Grammar("iu:C:", "ignore-environment unset= chdir=", assigns=True),
    "genv": Grammar("iu:C:", "ignore-environment unset= chdir=", assigns=True),
    "sudo": Grammar(
        "nEHSbku:g:D:", "non-interactive preserve-env user= group= set-home chdir=", assigns=True
    ),
    "doas": Grammar("nu:"),
    "stdbuf": Grammar("i:o:e:", "input= output= error="),
    "xargs": Grammar(
        "0rtxI:n:P:L:d:E:s:a:",
        "arg-file= null no-run-if-empty verbose exit max-args= max-procs= max-lines= delimiter="
        " replace= max-chars=",
    ),
    "taskset": Grammar("ac", "all-tasks cpu-list", 1),
    "strace": Grammar("fFcCqtTyZe:o:s:p:"),
    "valgrind": Grammar(
        "", "tool= leak-check= show-leak-kinds= track-origins= error-exitcode= quiet"
    ),
    "xvfb-run": Grammar("as:", "auto-servernum"),
    "caffeinate": Grammar("disut:w:"),
    "chronic": Grammar("ev"),
    "eatmydata": Grammar(),
    "busybox": Grammar(),
}
"""Programs, and words of the shell, that run the command behind their own words."""

RUNNERS: Mapping[str, str] = {
    **dict.fromkeys(("npx", "bunx", "uvx"), ""),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye", "pipenv", "pipx", "conda"), "run"),
    **dict.fromkeys(("npm", "bundle", "direnv", "rbenv", "pyenv", "asdf", "nvm"), "exec"),
    **dict.fromkeys(("pnpm", "yarn"), "exec dlx"),
    "mise": "exec x",
    "rustup": "run",
    "bun": "x",
}
"""Tools of projects, and the words behind which they run a command, of the project or fetched."""
RUNNER_OPTIONS = Grammar(
    "yqp:n:",
    "yes quiet no-install silent frozen no-sync locked with= python= package= from= extra= group="
    " project= directory= isolated offline verbose no-capture-output live-stream",
)
RUNNER_REFUSED = re.compile(r"-[A-Za-z]*c|--(call|script-shell|node-options|shell)(=.*)?")

CARRIERS = frozenset(
    {
        *("capsh", "tmux", "screen", "start-stop-daemon", "run-parts", "setarch", "linux32"),
        *("linux64", "i386", "x86_64", "unshare", "nsenter", "chroot", "bwrap", "firejail"),
        *("proot", "systemd-run", "systemd-inhibit", "at", "batch", "crontab", "parallel"),
        *("entr", "watchexec", "hyperfine", "expect", "unbuffer", "sg", "su", "runuser"),
        *("logsave", "gdb", "lldb", "ltrace", "perf", "prove", "ed", "ex", "vi", "vim", "nvim"),
        *("view", "emacs", "nano", "flock", "setpriv", "prlimit", "chrt", "choom", "faketime"),
        *("fakeroot", "socat", "nc", "ncat", "netcat", "telnet", "compgen", "complete", "bind"),
        *("enable", "hash", "alias", "unalias", "fc", "coproc", "sotruss", "uclampset"),
        *("catchsegv", "dbus-run-session", "torsocks", "proxychains", "proxychains4", "dotenv"),
        *("nodemon", "chpst", "softlimit", "tsocks", "toybox", "pkexec", "run0", "dlv"),
        *("rlwrap", "m4", "dc", "git-shell", "sshpass", "autossh", "cpulimit", "schroot"),
        *("machinectl", "toolbox", "distrobox", "ccache", "distcc", "vipe", "git-lfs"),
    }
)
"""Their words, their input or their files hold commands in a form that has no grammar here."""
CARRIER_NAMES = re.compile(r"ld-linux.*|ld-musl.*|ld\.so.*|linux(32|64)|u?i[3-6]86")
HARMLESS_CARRIERS: Mapping[str, re.Pattern[str]] = {
    "crontab": re.compile(r"-l"),
    "hash": re.compile(r"-r"),
    **dict.fromkeys(("nc", "ncat"), re.compile(r"-[vnwu46]*z[vnwu46]*( [\w.$-]+)*")),
}
"""What the words of such a program are, taken together, where it runs nothing."""

TEXT_TAKERS = frozenset(
    {
        *("echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "git", "gh", "which", "type"),
        *("man", "whatis", "apropos", "command", "apt", "apt-get", "brew", "dnf", "yum"),
        *("pacman", "apk", "pip", "pip3", "conda", "npm", "pnpm", "yarn", "cargo", "go", "gem"),
        *("docker", "podman", "kubectl", "ssh", "ls", "cat", "head", "tail", "wc", "test", "["),
        *("[[", "export", "pgrep", "pkill", "killall", "pidof", "file", "stat", "tar", "zip"),
        *("sed", "jq", "curl", "wget", "cp", "mv", "ln", "mkdir", "touch", "chmod", "chown"),
        *("basename", "dirname", "tldr", "systemctl", "service", "make", "poetry", "uv", "npx"),
        *("dpkg", "hash", "read", "unset", "local", "declare", "for", "case"),
        *("mapfile", "set", "sqlite3", "psql", "mysql", "redis-cli", "rsync", "scp", "tree"),
        *("sort", "uniq", "tee", "tr", "cut", "diff", "rm", "find", "shift", "return", "exit"),
        *(
            "pegboard",
            "pytest",
            "mypy",
            "ruff",
            "snap",
            "choco",
            "winget",
        ),
    }
)
"""A word behind them that is a command's name is a text, a file, or runs in another world."""
SHARP = SHELLS | {
    *("rm", "rmdir", "shred", "dd", "mkfs", "truncate", "mv", "chmod", "chown", "kill", "pkill"),
    *("killall", "sudo", "eval", "exec", "source", "curl", "wget", "ssh", "reboot", "shutdown"),
    "xargs",
}
"""Behind any other program such a word may be what it runs."""

_COMPILES = r"-(wrapper|fplugin|B|specs)|@|-Xclang"
_MAKES = (
    r"-[A-Za-z]*E|--ev|\.?SHELL|-f-$|-$|MAKEFLAGS|MAKEFILES"
    r"|\w+\s*[:+?!]*=[^\n]*[;&|`$()<>]|(CC|CXX|LD|AR)=(?!(gcc|clang|cc|[gc]\+\+|clang\+\+)(-\d+)?$)"
)
RUNS: Mapping[str, str] = {
    **dict.fromkeys(("make", "gmake"), _MAKES),
    **dict.fromkeys(("gcc", "cc", "g++", "c++", "clang", "clang++"), _COMPILES),
    "sqlite": r"-(cmd|init)|\s*\.(sh|sy|lo|im|re|ou|on|ex)|.*(writefile|edit\(|load_extension)",
    "psql": r".*(\\!|\\copy.*program|copy.*program|\\o\s*\||\\g\s*\|)",
    "mysql": r".*(\\!|\bsystem\b)|--pager",
    "gh": r"alias|extension|!",
    "npm": r"--(script-shell|node-options|shell)|config$|explore$|set$|x$",
    "sort": r"--c[oh]?m?o",
    "cargo": r"--config",
    "go": r"-{1,2}(exec|toolexec|vettool)|generate$",
    "rg": r"--(pre|hostname-bin)(=|$)",
    **dict.fromkeys(("fd", "fdfind"), r"-[A-Za-z]*[xX]|--e?xec"),
    **dict.fromkeys(("bat", "batcat", "ag"), r"--pager(?!=(cat|never)$)"),
    "cmake": r"-P|-E\n(?!(copy\w*|make_directory|touch|echo|capabilities|cat|compare_files|rm)$)",
    **dict.fromkeys(
        ("tar", "gtar", "bsdtar"),
        r"-[A-Za-z]*[IF]|[A-Za-z]*[IF][A-Za-z]*$|--(ch\w*-a|use|to-c|info|new|rsh|rmt)",
    ),
    "zip": r"-[A-Za-z]*T|--un",
    "split": r"--fil",
    "man": r"-[A-Za-z]*[PH](?!\ncat$)|--(pa|ht)",
    "pytest": r"-p",
    "mypy": r"--python-e|--py.*=/",
    "jq": r".*\$ENV|.*\benv\b|.*\binput_filename\b",
    "less": r"\+|-[kK]|--le",
    "more": r"\+",
    **dict.fromkeys(
        ("ssh", "scp", "sftp"), r"(?i:-o.*(command|include|provider|securitykey))|-[A-Za-z]*F|-[SD]"
    ),
    "rsync": r"--rsync-path|(-[A-Za-z]*e\n?+|--rsh[=\n])(?!ssh( [^;&|$`(\n]*)?$)",
    **dict.fromkeys(
        ("docker", "podman"),
        r"(-v=?|--volume=?)?/(etc|root|home|usr|var|boot|dev|proc|sys|bin|lib)?/?:|--priv|--pid"
        r"|--entryp|.*(source|src)=/(,|$)",
    ),
    "kubectl": r"--kubeconfig",
    **dict.fromkeys(("apt", "apt-get", "dpkg"), r"-o|--option|--pre-invoke"),
    "pip": r"--python",
    "wget": r"-e|--execute|--use-askpass",
    "dmesg": r"--pager",
    "journalctl": r"--pager",
    "openssl": r"engine|-engine",
    "nmap": r"--script|--interactive",
    "ip": r"netns|-b|vrf",
}
"""For each program which words make it run another one; those of them that are seen all day not."""
OPTIONS_FIRST = frozenset({"jq", "gh", "docker", "podman", "kubectl", "npm", "cargo", "go", "psql"})
"""Of these what runs another program is a command of theirs, or a text: no operand is one."""
CODE_ON_STDIN = re.compile(
    r"^\s*\.(sh|sy|lo|im|re|ou|on|ex)|^\s*(system|\\!)|\\!|#\s*include|program", re.MULTILINE
)
READS_CODE = frozenset({"sqlite3", "psql", "mysql", "make", "gmake", "gcc", "cc", "g++", "clang"})
"""They do what their input says."""
