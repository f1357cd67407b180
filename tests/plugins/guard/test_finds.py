"""Programs that walk a tree destroy all of it where what they seek is not narrow."""

import pytest

from guarding import of_command

DESTROYING = r"""
shopt -s nullglob; cd ~; find nope* -delete
mv -t /tmp/o ~/*
mv --target-directory=/tmp/o ~/*
mv --target=/tmp/o ~
tar --rem -cf x.tar ~
find ~ -mtime -9999 -delete
find ~ -mtime +3 -delete
find ~ -newermt 1970-01-01 -delete
find ~ -newer /etc/passwd -delete
find ~ -size -100M -delete
find ~ -type f -exec cp /dev/null {} \\;
git init -q ~ && git -C ~ clean -ffdxq
cd ~ && git init && git clean -fdx
find . -name .git -exec rm -rf {} +
find . -iname .GIT -delete
find . -name '.g*' -type d -exec rm -rf {} +
find . -name HEAD -delete
echo -rf ~ | xargs rm
echo ~ | xargs rm -rf
printf '%s\\n' ~ | xargs -I% rm -rf %
x=.git; find . -name $x -exec rm -rf {} +
cp /bin/rm x; ./x -rf ~
ln -s $(which rm) x; ./x -rf .git
"""
ORDINARY = r"""
find . -name '*.log' -mtime +7 -delete
find . -name '*.pyc' -delete
find . -not -path './.git/*' -name 'config.bak' -delete
find . -name .git -prune -o -name '*.o' -delete
find build -mtime +3 -delete
find . -size +100M -delete
find . -empty -delete
mv -t build a b
mv -t /tmp/o a
git init -q build/x
shopt -s nullglob; for f in *.o; do rm "$f"; done
grep -rn x . /dev/null
echo a b | xargs rm
which rm
cp /bin/ls x; ./x -l ~
/bin/rm -rf build; ls ~
"""


@pytest.mark.parametrize("command", DESTROYING.strip().splitlines())
async def test_what_is_not_narrow_is_refused_or_asked_for(project, command):
    verdict = await of_command(project, command)

    assert verdict.action == "deny" or verdict.firm


@pytest.mark.parametrize("command", ORDINARY.strip().splitlines())
async def test_what_is_narrow_is_not(project, command):
    assert await of_command(project, command) is None
