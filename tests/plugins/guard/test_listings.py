"""A listing is followed for reading, and never for destroying: what it names is what is lost."""

import pytest

from support.tools.guarding import of_command

NAMES = ("a.txt", "b.txt", "c.log", "src/a.py", "src/b.py", "docs/a.md", "old/a.tmp", "old/b.tmp")
LOSING = r"""
for f in $(ls); do rm -f $f; done
ls | while read f; do > "$f"; done
git ls-files | while read f; do rm "$f"; done
rg -l . | xargs rm
grep -rl '' . | xargs rm
rm -f $(printf '%s ' *)
rm $(echo *)
for f in $(echo *); do rm $f; done
perl -i -ne '' *
perl -i -0pe 's/.*//s' $(git ls-files)
ruby -i -ne '' *
ls | xargs rm -f
ls | xargs -n1 rm
ls | sort | tail -n +1 | xargs rm
ls -I x | xargs rm
dir | xargs rm
tree -fi | xargs rm
fd | xargs rm
fd -t f . | xargs rm
rg --files -g '*.*' | xargs rm
rg -l -e . -t py | xargs rm
git ls-files '*.*' | xargs rm
git ls-files :/ | xargs rm
git ls-files -o --exclude-standard | xargs rm
git diff --name-only HEAD~5 | xargs rm
find . -type f -name '[a-z]*' | xargs rm
find . -maxdepth 1 -type f -name '*.*' | xargs rm
ls | grep -v zzz | xargs rm
ls | awk '/./ {print $1}' | xargs rm
ls | head -n 100 | xargs rm
rm $(basename -a *)
rm $(du -a . | cut -f2)
rm $(ls -d "$PWD"/*)
x=$(git ls-files); for f in $x; do rm $f; done
mapfile -t a < <(git ls-files); rm "${a[@]}"
while read f; do truncate -s 0 "$f"; done < <(git ls-files)
xargs rm <<< "$(ls)"
f() { rm "$@"; }; f $(ls)
f() { while read x; do rm $x; done; }; ls | f
f() { ls; }; f | xargs rm
sh -c 'ls' | xargs rm
ls | while read x; do echo $x; done | xargs rm
ls | xargs -n1 echo | xargs rm
ls > l; xargs rm < l
git ls-files > l; rm $(cat l)
ls > l; rm $(<l)
ls > l; xargs -a l rm
cd src && git ls-files .. | xargs rm
set -- $(ls); for f in "$@"; do rm $f; done
IFS=$'\n'; for f in $(ls); do g=$f; rm "$g"; done
find . -type f -print0 | while IFS= read -r -d '' f; do rm "$f"; done
ls | timeout 5 xargs rm
grep -rL zzz . | xargs rm
rg --files --hidden | xargs rm
for f in *; do cp a.txt $f; done
for f in $(ls); do cp -f a.txt "./$f"; done
for f in $(ls); do install a.txt $f; done
: > e; for f in *; do cp e $f; done
for f in $(ls); do gzip $f; done
for f in $(ls); do echo > $f; done
for f in $(ls); do mv "$f" /tmp/; done
git ls-files | xargs -I{} mv {} /tmp/
git ls-files | xargs sed -i d
git ls-files | xargs git rm -f
ls | xargs tee
git ls-files | zip -m x.zip -@
git ls-files | tar cf x.tar -T - --remove-files
(cd src/..; ls | xargs rm)
for d in . src; do (cd $d && ls | xargs rm); done
git stash -u; git stash drop
git stash && git stash clear
git checkout-index -a -f
git checkout-index --force --all
git ls-files | git checkout-index -f --stdin
ls | tee l; xargs rm < l
ls | tee l | head; xargs -a l rm
ls | tee l > /dev/null; rm $(cat l)
tee l < <(ls); xargs rm < l
ls | sort -o l; xargs rm < l
ls > l; echo x >> l; xargs rm < l
find . -type f -fprint l; xargs rm < l
printf -v x '%s ' *; rm $x
printf -v x '%s ' $(ls); rm $x
for f in *; do sort -o "$f" /dev/null; done
for f in ./*; do sort -o "$f" /dev/null; done
for f in ./*; do shuf -o"$f" /dev/null; done
for f in $(ls); do wget -O "$f" http://localhost/; done
for f in *; do wget -O "$f" http://localhost/; done
for f in *; do curl -o "$f" http://localhost/; done
for f in $(git ls-files); do curl -o "$f" "http://localhost/$f"; done
for f in *; do gcc x.c -o "$f"; done
for f in *; do echo | sponge "$f"; done
for f in *; do echo "$f" | sponge "$f"; done
for f in *; do echo "$f" > t; cp t "$f"; done
for f in *; do mv "$f" "$f.bak"; done; rm *.bak
for f in *; do mv "$f" "x$f"; done; rm x*
for f in *; do mv "$f" "$f.bak"; done; find . -name '*.bak' -delete
for f in *; do mv "$f" "$f.bak"; done; find . -name '*.bak' -exec rm {} +
for f in *; do mv "$f" "$f.bak"; done; ls *.bak | xargs rm
for f in $(ls); do mv "$f" "$f.bak"; done; rm *.bak
ls | xargs -I{} mv {} {}.bak; rm *.bak
rename 's/$/.bak/' *; rm *.bak
mkdir b; mv [a-zA-Z]* b; rm -rf b
mkdir b; mv [a-zA-Z]* b; rm -r b/*
for f in *; do mv "$f" b; done
"""
NARROW = r"""
ls src | xargs rm
ls old | xargs -I% rm old/%
for f in $(ls old); do rm "old/$f"; done
cd old && ls | xargs rm
ls *.log | xargs rm
for f in $(ls *.tmp); do rm $f; done
rm $(printf '%s ' *.log)
git ls-files '*.log' | xargs rm
git ls-files old | xargs git rm -f
rg --files -g '*.tmp' | xargs rm
rg -l x old | xargs rm
grep -rl x src | xargs rm
fd -e tmp | xargs rm
find . -name '*.tmp' | xargs rm
find . -maxdepth 1 -name '*.log' | xargs rm
ls | grep log | xargs rm
ls | head -1 | xargs rm
ls -t | tail -n 1 | xargs rm
ls; rm a.txt
ls | wc -l; find . -name '*.tmp' | xargs rm
for f in $(git ls-files); do sort "$f" > "$f.sorted"; done
for f in $(ls); do cp "$f" "old/$f"; done
for f in $(ls); do mv "./$f" "x_$f"; done
for f in *.txt; do mv "$f" "${f%.txt}.md"; done
for f in *; do cp "$f" "/tmp/$f"; done
for d in */; do cp a.txt "$d"; done
for f in $(git ls-files); do tr -d x < "$f" > tmp && mv tmp "$f"; done
for f in $(git ls-files); do tr -d x < "$f" > tmp; cp tmp "$f"; done
for f in $(git ls-files); do cat "$f" | sort > tmp; cp tmp "$f"; done
for f in $(git ls-files); do tr -d x < "$f" > "$f.tmp" && mv "$f.tmp" "$f"; done
for f in $(git ls-files); do echo x >> "$f"; done
for f in $(git ls-files '*.md'); do mv "./$f" docs/; done
git diff --name-only | xargs -I% cp % /tmp/kept/
git ls-files | xargs sed -i s/a/b/
git ls-files | xargs chmod 644
git ls-files -ci --exclude-standard | xargs git rm --cached
git ls-files | xargs wc -l
perl -i -ne 'print' *
perl -pi -e 's/a/b/' *
git stash -u; git stash pop
git stash list
git checkout-index a.txt
ls *.log | tee l; xargs rm < l
printf -v x '%s ' *.log; rm $x
for f in *; do sort "$f" -o "$f"; done
for f in ./*; do sort -o "$f" "$f"; done
for f in src/*; do gcc -c "$f" -o "${f%.c}.o"; done
for f in *; do tr a b < "$f" | sponge "$f"; done
for f in *; do mv "$f" "$f.bak"; done
for f in *.log; do mv "$f" "$f.bak"; done; rm *.bak
mkdir b; mv [a-zA-Z]* b; rm -rf old
for f in *; do mkdir -p b; mv "$f" b; done
for f in *; do mv "$f" docs; done
rm -f *.bak; for f in *; do mv "$f" "$f.bak"; done
"""


@pytest.fixture
def full(project):
    """The project with files of some folders."""
    (project / "away").unlink()
    (project / "build").rmdir()
    for name in NAMES:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).touch()
    return project


@pytest.mark.parametrize("command", LOSING.strip().splitlines())
async def test_what_is_lost_by_listed_names_is_refused_or_asked_for(full, command):
    verdict = await of_command(full, command)

    assert verdict.action == "deny" or verdict.firm


@pytest.mark.parametrize("command", NARROW.strip().splitlines())
async def test_what_leaves_most_files_is_not(full, command):
    assert await of_command(full, command) is None


@pytest.mark.parametrize(
    "command",
    [
        *("rm -r tool", "mv tool b", "git mv tool b", "mkdir x; mv tool x/", "mv -t src tool"),
        *("mv tool b; echo x > b/t.py", "git rm -r tool", "rm -r t*", "rm -rf src"),
        *("mv t* b", "mv * old", "for f in t*; do mv $f b; done", "rename tool b *"),
    ],
)
async def test_a_folder_is_protected_with_what_is_in_it(full, command):
    for name in ("tool/t.py", "src/sitecustomize.py"):
        (full / name).parent.mkdir(exist_ok=True)
        (full / name).touch()

    verdict = await of_command(full, command)

    assert (verdict.action, verdict.firm) == ("ask", True)


@pytest.mark.parametrize(
    "command", ["rm -rf docs", "rm -rf node_modules", "mv docs src", "ls tool"]
)
async def test_a_folder_without_such_files_is_not(full, command):
    for name in ("tool/t.py", "node_modules/x.js"):
        (full / name).parent.mkdir(exist_ok=True)
        (full / name).touch()

    assert await of_command(full, command) is None
