"""The editor for tools' processes, which have no terminal: the editor fails at once with advice."""

import sys

if __name__ == "__main__":
    sys.exit(
        f"cannot edit {' '.join(sys.argv[1:]) or 'a file'}: commands of Pegboard run without a"
        " terminal. Pass the text as an option (git commit -m TEXT, --no-edit), change the file"
        " with a tool, or put GIT_EDITOR=true in front of git to keep the text as it is"
    )
