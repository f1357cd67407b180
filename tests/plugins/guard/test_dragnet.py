"""Of a line that is not known the words alone are enough for a question, wherever they stand."""

import pytest

from support.tools.guarding import of_command

DESTROYING = r"""
x='rm -rf ~'; eval "$x"
exec='rm -rf ~'; tar cf a --checkpoint-action=exec=$exec .
git -c core.fsmonitor='rm -rf ~' status
split --filter='rm -rf ~' x
alias l='rm -rf ~'
GIT_SSH_COMMAND='rm -rf .git' git fetch
git rebase --exec='rm -rf $x' $y
$x; rm$() -rf ~
$x; r${z}m -rf ~
mapfile -C'rm -rf ~' -c1 x < a
date +'rm -rf ~' | sh
awk -v x='rm -rf ~' $y
sed 's/.*/rm -rf ~/e' a
/usr/bin/rm* -rf ~; $x
/bin/r? -rf ~; $x
/bin/?? -rf ~; $x
hash -p /usr/bin/rm ls; ls -rf ~
tmux new 'git --work-tree=$HOME clean -ffdx'
eval $(echo cm0gLXJmIH4K | base64 -d)
eval $(printf '\162m -rf ~')
cp /bin/rm x; $(echo ./x) -rf ~
ssh -o ProxyCommand='rm -rf .git' x
T=~; eval rm -rf $T
flock x rm -rf {project}
su -c 'rm -rf {project}/*'
eval "shutil.rmtree('.git')"
x=rm; eval $x -rf {project}
eval 'r''m -rf ~'; $x
tmux new 'git -c a.b=c clean -fdx'
tmux new 'dd if=x of=/dev/sda'
"""
ORDINARY = """
$X; rm -f a.o; ls ../b
gdb -ex run ./a; rm -rf build
eval $X; git rm a.py
$X > /dev/null; rm x.log
tmux new 'rm -f .gitignore HEAD~1'
make clean; eval $X
LD_LIBRARY_PATH=/usr/lib ./a; rm a.out
su -c 'rm -rf /srv/x/build'
eval $X; rm a-b
tmux new 'cp a b'; echo ${x//\\//-} "${x%/*}"
"""


@pytest.mark.parametrize("command", DESTROYING.strip().splitlines())
async def test_a_deleting_word_with_a_vital_one_is_asked_for(project, command):
    verdict = await of_command(project, command.replace("{project}", str(project)))

    assert verdict.action == "deny" or verdict.firm


@pytest.mark.parametrize("command", ORDINARY.strip().splitlines())
async def test_other_words_are_not(project, command):
    assert await of_command(project, command) is None
