"""What a line writes is known or asked for, by whatever name: listed, computed, in a language."""

import pytest

from plugins.bash.test_verdicts import project, verdicts

__all__ = ["project"]

RUNNING_BY_ITSELF = r"""
echo x > $(git rev-parse --git-dir)/hooks/pre-commit
cp f "$(git rev-parse --git-path hooks)/pre-commit"
cd $(git rev-parse --git-dir); echo x > hooks/pre-commit
cd .git && echo x > "$PWD/hooks/pre-commit"
cd .git && echo x > "$(pwd)/hooks/pre-commit"
cd .git && x=$PWD && cd .. && echo x > $x/hooks/pre-commit
cd .git; cd ..; echo x > $OLDPWD/hooks/pre-commit
cd ~; echo x > $PWD/.bashrc
for d in .*/hooks; do echo x > $d/pre-commit; done
find . -name hooks -exec touch {}/pre-commit \;
find . -name hooks | while read d; do echo x > $d/pre-commit; done
cp pre-commit .gi?/hooks
awk 'BEGIN{print "x;" > ".git/hooks/pre-commit"}'
printf '+++ .git/hooks/pre-commit..' | patch -p0
tar --transform=s,a,.git/hooks/pre-commit, -xf a.tar
sqlite3 :memory: '.save .git/hooks/x'
sqlite3 :memory: '.backup .git/hooks/x'
sqlite3 :memory: '.clone .git/hooks/x'
sqlite3 :memory: "vacuum into '.git/hooks/x'"
DEPENDENCIES_OUTPUT=.git/hooks/x gcc a.c
SSLKEYLOGFILE=.git/hooks/x curl localhost
touch $(find . -name hooks)/x
echo .git/hooks/x | xargs touch
ls -d .git/hooks | xargs -I{} cp a {}/x
echo x > ~+/.git/hooks/x
cd .git; cd ..; echo x > ~-/hooks/x
GIT_DIR=$(git rev-parse --git-dir); echo x > $GIT_DIR/hooks/pre-commit
d=$(git rev-parse --git-dir); echo x > $d/hooks/pre-commit
d=$(git rev-parse --git-dir 2>/dev/null); install x $d/hooks/pre-commit
ln -s x $(git rev-parse --git-dir)/hooks/pre-commit
git config --file $(git rev-parse --git-dir)/config core.pager x
mkdir -p $(dirname .git/hooks/x)/y
dirname .git/hooks/x | xargs -I{} touch {}/y
echo x > "$(dirname "$(git rev-parse --git-dir)/x")/hooks/y"
sed -i s/a/b/ .gi*/config
for f in .g*/hooks/*; do echo x > $f; done
tee .gi[t]/hooks/x < a
echo a .git/hooks/x | xargs cp
printf '%s\n' .git/hooks/x | xargs -I% cp a %
cat list | xargs touch
mkdir -p $(cat f)
awk '{print > $2}' a
awk '{ if (/}/) print "x" > ".git/hooks/x" }' a
awk '{print "a" >> ".git/config"}' a
awk '$1 > 3 {print $2 > ".git/config"}' a
patch -p1 < evil.diff
patch -p1 -i evil.diff
"""
"""Each writes a hook, the configuration of git or a start-up file, if it does what it can."""
ORDINARY = r"""
awk '$3 > 10 {print $1}' a.txt
awk 'NR > 1 {print}' a.txt > b.txt
awk '{ if ($3 > 10) print $1 }' a.txt
awk '{print $2 > "out.txt"}' a.txt
awk '{print $1 / 2}' a.txt
grep -rl foo src | xargs sed -i 's/foo/bar/g'
git ls-files '*.py' | xargs sed -i s/a/b/
for f in $(git ls-files); do sed -i s/a/b/ "$f"; done
mkdir -p out/$(date +%F)/logs
cp a.txt "a-$(date +%s).txt"
find . -name '*.py' -exec sed -i s/a/b/ {} +
find src -type f -name '*.md' | xargs -I{} cp {} docs/
ls *.txt | xargs rm -f
echo a.txt b.txt | xargs rm
for f in *.txt; do mv "$f" "${f%.txt}.md"; done
find . -name '*.pyc' -not -path './.git/*' -delete
cp a.txt $(git rev-parse --show-toplevel)/b.txt
cd "$(git rev-parse --show-toplevel)" && echo x > a.txt
mkdir -p build && cd build && cmake .. && echo x > $PWD/log.txt
tar czf out-$(git rev-parse --short HEAD).tar.gz src
for d in */; do (cd "$d" && touch x); done
rm -rf .pytest_cache .mypy_cache .*_cache
touch src/*.py
patch -p1 < x.diff
rm -rf node_modules/* dist/*
d=$(mktemp -d); cp -r src $d/x
echo x > log-$(date +%F)/a.txt
rg -l foo | xargs sed -i s/a/b/
for f in $(find docs -name '*.md'); do sed -i s/a/b/ $f; done
find . -path ./node_modules -prune -o -name '*.ts' -print | xargs sed -i s/a/b/
grep -rl --include='*.py' foo . | xargs sed -i s/foo/bar/
sqlite3 db 'select * from a'
psql -c '\dt'
"""
NAMED_ON_INPUT = r"""
cpio -o <<< .env
echo .env | cpio -o
tar -cf - -T - <<< .env
echo .env | tar -cf - -T -
zip - -@ <<< .env
rsync -a --files-from=- . x <<< .env
find -iname '.EN?' -exec cat {} +
find . -iname '.ENV' -exec cat {} +
cat list | cpio -o
xargs cat <<< .env
"""
EDITING = r"""
git ls-files | xargs sed -i s/a/b/
for f in $(git ls-files); do sed -i s/a/b/ $f; done
find . -name '*.txt' | xargs sed -i s/a/b/
cp x $(ls a.txt)
awk '{print > "a.txt"}' b.txt
perl -i -pe s/a/b/ a.txt
perl -pi -e s/a/b/ a.txt
ruby -i -pe 'x' a.txt
find . -name a.txt -exec sed -i s/a/b/ {} +
gawk -i inplace '{print}' a.txt
sed -i s/a/b/ a.txt
sed -ni p a.txt
sed --in-place s/a/b/ a.txt
ex -sc '%s/a/b/|x' a.txt
tee $(ls a.txt) < b.txt
while read f; do echo x > $f; done < <(git ls-files)
git ls-files | while read f; do mv "$f" x; done
ls a.txt | xargs -I{} cp b.txt {}
sort -o a.txt b.txt
truncate -s0 $(git ls-files)
patch -p1 < x.diff
"""


@pytest.fixture
def hooked(project):
    """The project, in which git has hooks and a configuration."""
    for name in (".git/hooks/x", ".git/config", "a.txt", "b.txt"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("text\n")
    (project / "x.diff").write_text("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-text\n+other\n")
    (project / "evil.diff").write_text("--- /dev/null\n+++ b/.git/hooks/y\n@@ -0,0 +1 @@\n+x\n")
    return project


async def test_no_line_writes_what_runs_by_itself_unasked(hooked, tmp_path):
    found = await verdicts(hooked, tmp_path, RUNNING_BY_ITSELF.strip().splitlines())

    assert [line for line, said in found.items() if said[0] == "allow"] == []


async def test_lines_that_write_ordinary_files_are_not_asked_for(hooked, tmp_path):
    found = await verdicts(hooked, tmp_path, ORDINARY.strip().splitlines())

    assert [line for line, said in found.items() if said[0] != "allow"] == []


LISTED = r"""
find . -name .git -prune -exec rm -r {} \;
find . -samefile .git/HEAD -delete
find . -iname head | xargs rm -f
find . -iname 'head*' -exec ln -sf x {} \;
a=($(find . -iname head)); rm ${a[@]}
f() { rm "$@"; }; f $(find . -wholename '*/HEAD')
find . -name x -path '*/hooks/*' -exec cp a.txt {} \;
find .git -name 'x*' | xargs rm -f
find . -empty -delete
find . -type d -empty -exec rmdir {} +
find . -iname CONFIG -exec sed -i s/a/b/ {} +
find . -name sitecustomize.py -exec cp a.txt {} \;
find . -name tasks.json -exec sed -i s/./J/ {} +
find . -name .vscode -prune -exec cp a.txt {} \;
find . -name .husky -prune -exec rm -r {} \;
git ls-files .husky | xargs sed -i s/a/b/
git ls-files | xargs sed -i s/a/b/
sed -i s/a/b/ $(git ls-files .vscode)
grep -rl text .vscode | xargs sed -i s/a/b/
ls sub/* | xargs sed -i s/a/b/
find . -iname '*.LOCAL' -exec cat {} +
git config --file .husky/pre-commit a.b c
git merge-file .vscode/tasks.json a.txt b.txt
git checkout-index -f --prefix=.husky/ a.txt
patch -o .husky/pre-commit a.txt x.diff
openssl rand -out .husky/pre-commit 3
objcopy -I binary -O binary a.txt .husky/pre-commit
zip -m x.zip .husky/pre-commit
tar xf x.tar -C .vscode
git mv .env b; cat b
git update-ref --stdin <<< 'delete HEAD'
git symbolic-ref HEAD refs/heads/none
git reflog expire --expire=now --all; git gc --prune=now
"""
LISTED_ORDINARY = r"""
find . -name '*.pyc' -delete
find sub -name '*.txt' -exec sed -i s/a/b/ {} +
find . -not -path './.git/*' -empty -delete
find sub -empty -delete
find . -path ./.git -prune -o -name '*.md' -exec sed -i s/a/b/ {} +
grep -rl text docs | xargs sed -i s/a/b/
git ls-files '*.md' | xargs sed -i s/a/b/
rg -l text docs | xargs sed -i s/a/b/
git symbolic-ref HEAD
git update-ref refs/heads/x HEAD
git reflog
git gc
"""
DENIED = r"""
git ls-files | xargs sed -i s/K/J/
sed -i s/K/J/ $(git ls-files)
find . -name '*.txt' -exec sed -i s/K/J/ {} +
find . -iname KEY.txt -exec cp a.txt {} \;
ls s*/* | xargs rm
rm -r secrets
mv secrets b
git mv secrets b
cp a.txt secrets
cp -t secrets a.txt
git rm -r secrets
chmod -R 777 secrets
gzip -r secrets
git checkout secrets/key.txt
git checkout HEAD secrets/key.txt
git checkout HEAD~1 .
git checkout -- .
git restore ./
git clean -fd secrets
git stash push secrets/key.txt
"""


@pytest.fixture
def running(hooked):
    """The project with files that other programs obey, and a second one of secrets."""
    (hooked / ".git/refs/tags").mkdir(parents=True)
    names = (".vscode/tasks.json", ".husky/pre-commit", "sub/sitecustomize.py", "sub/.env.local")
    for name in (*names, "sub/a.txt"):
        (hooked / name).parent.mkdir(exist_ok=True)
        (hooked / name).write_text("text\n")
    return hooked


async def test_what_is_listed_is_looked_up_in_the_project(running, tmp_path):
    lines = LISTED.strip().splitlines()

    found = await verdicts(running, tmp_path, lines)

    assert [line for line, said in found.items() if said[0] == "allow"] == []


async def test_a_listing_of_ordinary_files_is_not_asked_for(running, tmp_path):
    found = await verdicts(running, tmp_path, LISTED_ORDINARY.strip().splitlines())

    assert [line for line, said in found.items() if said[0] != "allow"] == []


async def test_a_rule_about_some_files_asks_for_what_may_be_one_of_them(running, tmp_path):
    (running / "secrets").mkdir()
    (running / "secrets/key.txt").write_text("K\n")
    lines = DENIED.strip().splitlines()
    rules = {"edit": {"*": "allow", "secrets/*": "deny"}}

    found = await verdicts(running, tmp_path, [*lines, "sed -i s/a/b/ a.txt"], permission=rules)

    assert [line for line, said in found.items() if said[0] == "allow"] == ["sed -i s/a/b/ a.txt"]


async def test_names_that_are_listed_make_an_edit(hooked, tmp_path):
    lines = EDITING.strip().splitlines()

    found = await verdicts(hooked, tmp_path, lines, permission={"edit": "deny"})

    assert [line for line, said in found.items() if said[0] == "allow"] == []


async def test_secrets_that_are_named_on_the_input_are_asked_for(hooked, tmp_path):
    lines = NAMED_ON_INPUT.strip().splitlines()

    found = await verdicts(hooked, tmp_path, [*lines, "find . -name '*.py' | cpio -o"])

    assert [line for line in lines if found[line][0] == "allow"] == []
    assert found["find . -name '*.py' | cpio -o"][0] == "allow"
