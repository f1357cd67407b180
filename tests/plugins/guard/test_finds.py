"""Programs that walk a tree destroy all of it where what they seek is not narrow."""

import pytest

from support.tools.guarding import of_command

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
find . -name .git -prune -exec rm -r {} \;
find . -name '.g*' -prune -exec rm -rf {} +
find . -name x -prune -o -name .git -exec rm -rf {} +
find . -not -path './x.git/*' -name .git -exec rm -rf {} +
find . -samefile .git/HEAD -delete
ln -s ~ l; rm -rf l/*
ln -s ~ l; cd l; rm -rf *
ln -s ~ l && find l/ -delete
ln -s $HOME l && find -L l -type f -delete
cp -s ~ l; rm -rf ./l/*
cd ~; ls | xargs -n1 rm
cd ~; for f in *; do rm "$f"; done
rg --files ~ | xargs rm
rm -f $(find . -type f)
find . -type f | while read -r f; do > "$f"; done
find . -type f -not -path './.git/*' | sort | xargs rm
for f in $(find ~); do truncate -s0 $f; done
cd ~; for f in *; do cp /dev/null $f; done
cd ~; for f in *; do ln -sf x $f; done
rg -l x $HOME | xargs rm
find $(echo ~) -delete
find $(cd; pwd) -mindepth 1 -delete
tar --remove-files -cf x.tar $(echo ~)/*
cd ~; zip -m /tmp/x.zip *
make -f /dev/stdin <<< 'x:;rm -rf ../home/*'
fuser -k .
cp $(which find) f; ./f . -delete
cp $(which git) g; ./g clean -fdx
ln -s /usr/bin/find src/f && src/f ~ -delete
cp $(which pegboard) p; ./p trust allow -y
python3 /opt/venv/bin/pegboard trust allow -y
/opt/venv/bin/peg* trust allow -y
/opt/venv/bin/[o-q]egboard trust allow -y
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
ln -s src l; rm -rf l/sub
ls | grep log | xargs rm
ls build | xargs rm
for f in *.log; do echo > "$f"; done
find . -path ./.git -prune -o -name '*.o' -delete
find . \( -name .git -o -name node_modules \) -prune -o -name '*.orig' -exec rm {} +
find build -type f | xargs rm
fuser -k 3000/tcp
cp /dev/null build/a.log
ln -sf a.log build/latest
"""


@pytest.mark.parametrize("command", DESTROYING.strip().splitlines())
async def test_what_is_not_narrow_is_refused_or_asked_for(project, command):
    verdict = await of_command(project, command)

    assert verdict.action == "deny" or verdict.firm


@pytest.mark.parametrize("command", ORDINARY.strip().splitlines())
async def test_what_is_narrow_is_not(project, command):
    assert await of_command(project, command) is None
