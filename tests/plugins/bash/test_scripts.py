"""Code that stands in a line is asked for where a rule denies what it names, wherever it stands."""

from pathlib import Path

import pytest

from pegboard_plugins.bash.scan import StartPlace, scan
from plugins.bash.test_verdicts import project, verdicts

__all__ = ["project"]

WRITTEN = r"""
echo 'touch PWN' > s.sh; bash s.sh
echo 'touch PWN' > s; . ./s
echo 'touch PWN' > s; cat s | sh
echo 'touch PWN' > s; cp s t; chmod +x t; ./t
echo 'touch PWN' | tee s; sh < s
printf 'x:\n\ttouch PWN\n' > Makefile; make
echo '{"scripts": {"x": "touch PWN"}}' > package.json; npm run x
cat > s <<< 'touch PWN'; bash s
mkfifo p; echo 'touch PWN' > p & bash p
echo 'import os; os.system("touch PWN")' > s.py; python3 s.py
echo 'touch PWN' > s; find . -name s -exec sh {} \\;
{ echo 'touch PWN'; } > s; sh s
"""
WORDS = r"""
vimdiff -c '!touch PWN' -c qa a b
lksh -c 'touch PWN'
rc.byron -c 'touch x'
newgrp root <<< 'touch x'
echo 'touch x' | newgrp root
lftp -c '!touch x'
debugfs -R '!touch x' a
trickle touch PWN
daemon -- touch PWN
setlock f touch PWN
zrun /usr/bin/touch PWN
msgfilter touch PWN
python3 -c 'exec(input())' <<< 'import os; os.system("touch PWN")'
python3 -m code <<< 'import os; os.system("touch PWN")'
perl -ne 'system $_' <<< 'touch PWN'
echo 'touch PWN' | perl -ne 'system $_'
pip config edit --editor 'touch PWN'
"""
ORDINARY = r"""
echo 'use touch to make it' > notes.md; cat notes.md
echo 'touch x' >> README.md && git add README.md
git commit -m 'touch up the docs'
grep -rn 'touch ' src
echo x > touched.txt; make
cat > a.py <<'E'; python3 a.py\nprint('hello')\nE
tsc --build src/touch
script -q -c 'echo touch' /dev/null
"""


def lines_of(text):
    return [
        line.replace("\\n", "\n") if "<<'E'" in line else line for line in text.strip().splitlines()
    ]


@pytest.mark.parametrize("text", [WRITTEN, WORDS], ids=["written", "words"])
async def test_code_that_names_what_is_denied_is_asked_for(project, tmp_path, text):
    rules = {"bash": {"touch *": "deny"}}

    found = await verdicts(project, tmp_path, lines_of(text), permission=rules)

    assert [line for line, said in found.items() if said[0] == "allow"] == []


async def test_texts_that_are_not_run_are_not(project, tmp_path):
    rules = {"bash": {"touch *": "deny"}}

    found = await verdicts(project, tmp_path, lines_of(ORDINARY), permission=rules)

    assert [line for line, said in found.items() if said[0] != "allow"] == []


COMPUTED = r"""
tr a-z b-za <<< 'ql -qe x' > s; sh s
{ rev <<< 'x fr- mr'; } > s; sh s
rev <<< 'x fr- mr' > t; mv t s; . ./s
rev <<< 'x fr- mr' | tee s; bash s
x=$(rev <<< 'x fr- mr'); echo "$x" > s; sh s
sed 's/x/rm/' <<< 'x y' > s; chmod +x s; ./s
awk '{print "r" "m x" > "s"}' a.txt; sh < s
base64 -d <<< cm0geA== > s.py; python3 s.py
split - <<< 'rm x'; sh xaa
csplit - 1 <<< 'rm x'; sh xx01
xxd -r -p - s <<< 726d2078; sh s
"""
READ = r"""
cat > s.sh <<'E'; bash s.sh | sort | head -1\nls\nE
sed -i s/a/b/ src/a.py; python3 src/b.py
sort names > sorted; bash build.sh
cut -f1 a > b; ./build.sh b
cat > s.sh <<'E'; chmod +x s.sh; ./s.sh | tr a b\nls\nE
"""


@pytest.mark.parametrize("line", lines_of(COMPUTED))
def test_a_file_that_is_run_is_not_computed_in_the_same_line(line):
    unclear = scan(
        line, StartPlace(cwd=Path("/w"), home=Path("/home/u"), worktree=Path("/w"))
    ).unclear

    assert unclear is not None
    assert unclear.code == "computed-code"


@pytest.mark.parametrize("line", lines_of(READ))
def test_what_is_made_of_the_output_of_a_script_is_no_code(line):
    assert (
        scan(line, StartPlace(cwd=Path("/w"), home=Path("/home/u"), worktree=Path("/w"))).unclear
        is None
    )
