"""Programs that run a command of their words: what they run is judged, or the line is unclear."""

import pytest

from pegboard_plugins.bash.scan import StartPlace, scan
from plugins.bash.test_verdicts import project, verdicts

__all__ = ["project"]


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("gdb -batch -ex run -ex bt ./a.out", "./a.out"),
        ("gdb -q -ex 'b main' -ex run --args ./a -x 1", "./a -x 1"),
        ("screen -dmS x npm start", "npm start"),
        ("screen -d -m -S x rm x.log", "rm x.log"),
    ],
)
def test_what_a_known_carrier_runs_is_a_command(tmp_path, line, run):
    found = scan(line, StartPlace(cwd=tmp_path, home=tmp_path))

    assert found.unclear is None
    assert run in [" ".join(argv) for argv in found.commands]


@pytest.mark.parametrize(
    "line",
    [
        *("gdb -ex 'shell x' ./a", "gdb -ex 'run > x' ./a", "gdb -ex 'print system(1)' ./a"),
        *("gdb -x file ./a", "gdb -p 1", "gdb ./a <<< 'shell x'", "echo shell x | gdb ./a"),
        *("screen -X stuff x", "screen -c file", "ls | xargs screen -dmS x", "gdb $X", "screen x"),
    ],
)
def test_other_words_of_it_are_unclear(tmp_path, line):
    assert scan(line, StartPlace(cwd=tmp_path, home=tmp_path)).unclear is not None


async def test_paths_of_another_world_are_no_files_of_this_machine(project, tmp_path):
    there = (
        *("docker run --rm -it -v $(pwd)/a:/data alpine ls /data", "docker exec a cat /etc/x"),
        *("docker run -e A=b -w /app alpine cat /etc/x", "bazel test //... --config=x"),
    )
    here = (
        *("docker run -v /etc/x:/x alpine ls", "docker run --env-file .env alpine ls"),
        *("docker cp a:/x /etc/x", "docker build -f /etc/x .", "docker run -v ~/x:/x a"),
    )

    found = await verdicts(project, tmp_path, (*there, *here))

    assert [line for line in there if found[line][0] != "allow"] == []
    assert [line for line in here if found[line][0] == "allow"] == []
