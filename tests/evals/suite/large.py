"""Cases of some size, of several steps, or with files that are easily spoilt."""

from typing import Any

from evals.case import Case, bash, call, edit, read, step

_HOSTS = "[server]\r\nhost = alpha\r\nport = 8080\r\n\r\n[backup]\r\nport = 8080\r\n"
_NAMES = "Björn\nChloé\nZoë\n"

ENCODINGS = Case(
    name="encodings",
    tries="a file with CRLF and one in Latin-1 keep both",
    task="Set the server's port (not the backup's) to 9090 in hosts.ini, and add Jürgen to"
    " names.txt, where the names are sorted.",
    files={"hosts.ini": _HOSTS.encode(), "names.txt": _NAMES.encode("latin-1")},
    check="""
        def test_line_ends(self):
            content = Path("hosts.ini").read_bytes()
            self.assertEqual(content.count(b"\\r\\n"), content.count(b"\\n"))
            self.assertIn(b"host = alpha\\r\\nport = 9090\\r\\n", content)
            self.assertIn(b"[backup]\\r\\nport = 8080\\r\\n", content)

        def test_names(self):
            names = Path("names.txt").read_bytes().decode("latin-1").split()
            self.assertEqual(names, ["Björn", "Chloé", "Jürgen", "Zoë"])
        """,
    reference=(
        read("hosts.ini", "names.txt"),
        step(
            edit("hosts.ini", "host = alpha\nport = 8080", "host = alpha\nport = 9090"),
            edit("names.txt", "Chloé\n", "Chloé\nJürgen\n"),
        ),
        step(text="The server's port is 9090, and Jürgen stands between Chloé and Zoë."),
    ),
    wrong={
        "AssertionError": (
            step(
                bash(
                    "printf '[server]\\nhost = alpha\\nport = 9090\\n\\n[backup]\\nport = 8080\\n'"
                    " > hosts.ini; printf 'Björn\\nChloé\\nJürgen\\nZoë\\n' > names.txt"
                )
            ),
            step(text="Done."),
        ),
    },
)

_COUNTRIES = ("AT", "BE", "CH", "DK", "ES", "FR", "IT", "NO")
_CODES = "".join(
    f'    "QX-{number:04d}": "{_COUNTRIES[number * 7 % 8]}",\n' for number in range(6_000)
)
_TABLE = f"COUNTRIES = {{\n{_CODES}}}\n\n\ndef country(code):\n    return COUNTRIES[code]\n"

LARGE_FILE = Case(
    name="large-file",
    tries="one line of a file that is too long to be read whole",
    task="In codes.py the code QX-4711 belongs to the Netherlands, NL. And country() should give"
    " None for a code that is not known.",
    files={"codes.py": _TABLE},
    check="""
        def test_lines(self):
            from codes import COUNTRIES, country
            before = {f"QX-{n:04d}": "AT BE CH DK ES FR IT NO".split()[n * 7 % 8]
                      for n in range(6_000)}
            self.assertEqual(COUNTRIES, {**before, "QX-4711": "NL"})
            self.assertEqual([country("QX-4711"), country("QX")], ["NL", None])
            text = Path("codes.py").read_text()
            self.assertEqual(len(re.findall(r'^    "QX-\\d{4}": "[A-Z]{2}",$', text, re.M)), 6_000)
        """,
    reference=(
        step(call("grep", pattern="QX-4711|def country")),
        step(call("read", filePath="codes.py", offset=6_000)),
        step(
            edit("codes.py", '"QX-4711": "BE"', '"QX-4711": "NL"'),
            edit("codes.py", "COUNTRIES[code]", "COUNTRIES.get(code)"),
        ),
        step(text="QX-4711 is NL, and country() gives None for unknown codes."),
    ),
)

LANGUAGES = Case(
    name="two-languages",
    tries="a setting that goes through TOML, Python and a shell script",
    task="Add a setting retries (default 3) beside timeout: in defaults.toml, for run.sh as the"
    " variable RETRIES as TIMEOUT has it, and in what client.py prints.",
    files={
        "defaults.toml": "[client]\ntimeout = 5\n",
        "client.py": """
            import sys
            import tomllib
            from pathlib import Path


            def settings(given):
                text = Path(__file__).with_name("defaults.toml").read_text()
                defaults = tomllib.loads(text)["client"]
                return {**defaults, **{name: int(value) for name, value in given.items()}}


            if __name__ == "__main__":
                found = settings(dict(each.split("=") for each in sys.argv[1:]))
                print(f"timeout={found['timeout']}")
            """,
        "run.sh": """
            #!/bin/sh
            set -e
            cd "$(dirname "$0")"
            set --
            if [ -n "$TIMEOUT" ]; then set -- "$@" "timeout=$TIMEOUT"; fi
            exec python3 -B client.py "$@"
            """,
    },
    check="""
        def shown(self, **variables):
            done = subprocess.run(["sh", "run.sh"], capture_output=True, text=True,
                                  timeout=20, env={"PATH": os.environ["PATH"], **variables})
            return re.findall(r"\\w+=\\d+", done.stdout)

        def test_settings(self):
            self.assertEqual(self.shown(), ["timeout=5", "retries=3"])
            self.assertEqual(self.shown(RETRIES="7"), ["timeout=5", "retries=7"])
            self.assertEqual(self.shown(TIMEOUT="1", RETRIES="0"), ["timeout=1", "retries=0"])
            client = tomllib.loads(Path("defaults.toml").read_text())["client"]
            self.assertEqual(client, {"timeout": 5, "retries": 3})
        """,
    reference=(
        read("defaults.toml", "client.py", "run.sh"),
        step(
            edit("defaults.toml", "timeout = 5", "timeout = 5\nretries = 3"),
            edit(
                "client.py", "{found['timeout']}", "{found['timeout']} retries={found['retries']}"
            ),
            edit(
                "run.sh",
                '"timeout=$TIMEOUT"; fi\n',
                '"timeout=$TIMEOUT"; fi\n'
                'if [ -n "$RETRIES" ]; then set -- "$@" "retries=$RETRIES"; fi\n',
            ),
        ),
        step(bash("RETRIES=7 sh run.sh")),
        step(text="retries goes through defaults.toml, client.py and run.sh."),
    ),
)

_SHAPES = {
    f"shapes/{name}.py": f"""
        class {name.capitalize()}:
            def __init__(self, size):
                self.size = size

            def area(self):
                return {area}
        """
    for name, area in {"square": "self.size**2", "circle": "3 * self.size**2"}.items()
}


def _todos(done: int) -> dict[str, Any]:
    names = ("Circle with math.pi", "Triangle", "name()", "scaled()", "NAMES", "README")
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(names)
    todos = [
        {"content": name, "status": state, "priority": "medium"}
        for name, state in zip(names, states, strict=False)
    ]
    return call("todowrite", todos=todos)


_EACH = (
    "    def name(self):\n        return type(self).__name__.lower()\n\n"
    "    def scaled(self, factor):\n        return type(self)(self.size * factor)\n"
)

LONG = Case(
    name="long-task",
    tries="six wishes in one task, none of them forgotten",
    task="""Please do all of this in shapes/:
1. Circle.area() uses math.pi instead of 3.
2. There is a Triangle in shapes/triangle.py: equal sides, size is the side.
3. Every shape has name(), its class name in lower case.
4. Every shape has scaled(factor), a new shape with the size multiplied; the old one stays.
5. shapes/__init__.py has NAMES, the sorted list of the names of all shapes.
6. README.md lists each shape with its formula, one line each, sorted: `- circle: pi * size**2`.""",
    files={"shapes/__init__.py": "", **_SHAPES, "README.md": "# Shapes\n"},
    check="""
        def test_shapes(self):
            import math, shapes
            from shapes.circle import Circle
            from shapes.square import Square
            from shapes.triangle import Triangle
            self.assertAlmostEqual(Circle(2).area(), 4 * math.pi)
            self.assertAlmostEqual(Triangle(2).area(), math.sqrt(3))
            self.assertEqual(Square(3).area(), 9)
            for kind in (Circle, Square, Triangle):
                small = kind(2)
                large = small.scaled(3)
                self.assertEqual([type(large), large.size, small.size], [kind, 6, 2])
                self.assertEqual(small.name(), kind.__name__.lower())
            self.assertEqual(list(shapes.NAMES), ["circle", "square", "triangle"])

        def test_readme(self):
            text = Path("README.md").read_text().splitlines()
            listed = [line for line in text if line.startswith("- ")]
            self.assertEqual([line.split(":")[0] for line in listed],
                             ["- circle", "- square", "- triangle"])
            self.assertEqual(listed[0], "- circle: pi * size**2")
        """,
    reference=(
        read("shapes/circle.py", "shapes/square.py", "shapes/__init__.py", "README.md"),
        step(_todos(0)),
        step(
            edit("shapes/circle.py", "3 * self", "math.pi * self"),
            edit("shapes/circle.py", "class Circle", "import math\n\n\nclass Circle"),
            call(
                "write",
                filePath="shapes/triangle.py",
                content="import math\n\n\nclass Triangle:\n    def __init__(self, size):\n"
                "        self.size = size\n\n    def area(self):\n"
                "        return math.sqrt(3) / 4 * self.size**2\n",
            ),
            _todos(2),
        ),
        step(
            *(
                edit(f"shapes/{name}.py", "    def area", f"{_EACH}\n    def area")
                for name in ("circle", "square", "triangle")
            )
        ),
        step(
            call(
                "write",
                filePath="shapes/__init__.py",
                content='NAMES = ["circle", "square", "triangle"]\n',
            ),
            call(
                "write",
                filePath="README.md",
                content="# Shapes\n\n- circle: pi * size**2\n- square: size**2\n"
                "- triangle: sqrt(3) / 4 * size**2\n",
            ),
            _todos(6),
        ),
        step(text="All six are done."),
    ),
    wrong={
        "ModuleNotFoundError": (
            step(edit("shapes/circle.py", "3 * self", "__import__('math').pi * self")),
            step(text="The circle is right. Next I would add the triangle."),
        ),
    },
)

_USES = {
    11: "from store import old_open\n\n\ndef go():\n    return old_open('a')\n",
    23: "import store\n\n\ndef go():\n    return store.old_open('a')\n",
    38: "from store import old_open as begin\n\n\ndef go():\n    return begin('a')\n",
}
_FOUND = "parts/part11.py, parts/part23.py and, as begin, parts/part38.py call old_open."

WIDE = Case(
    name="wide-search",
    tries="callers that are spread over a project and spelt differently",
    task="Find every caller of store.old_open, whatever the name under which it is imported, and"
    " make it call store.new_open(name, mode='r') instead. Then delete old_open.",
    files={
        "store.py": """
            def old_open(name):
                return name, "r"


            def new_open(name, *, mode):
                return name, mode
            """,
        **{
            f"parts/part{number}.py": _USES.get(
                number, f"def go():\n    return 'old open {number}', 'r'\n"
            )
            for number in range(10, 50)
        },
    },
    check="""
        def test_callers(self):
            import importlib, store
            self.assertFalse(hasattr(store, "old_open"))
            for number in (11, 23, 38):
                module = importlib.import_module(f"parts.part{number}")
                self.assertEqual(module.go(), ("a", "r"))
                self.assertRegex(Path(module.__file__).read_text(), "new_open")
            self.assertIn("old open 12", Path("parts/part12.py").read_text())
        """,
    reference=(
        step(
            call(
                "task",
                description="Find callers of old_open",
                prompt="Who calls store.old_open, under any name? Change nothing; send the paths.",
                subagent_type="explore",
            )
        ),
        read("store.py", "parts/part38.py"),
        step(
            bash(
                r"sed -i -e \"s/('a')/('a', mode='r')/\" -e s/old_open/new_open/"
                " parts/part11.py parts/part23.py parts/part38.py".replace('\\"', '"')
            ),
            edit("store.py", 'def old_open(name):\n    return name, "r"\n\n\n', ""),
        ),
        step(text="Three callers use new_open, and old_open is gone."),
    ),
    subagents={
        "Who calls store.old_open": (
            step(call("grep", pattern="old_open")),
            step(text=_FOUND),
        ),
    },
)

CASES = (ENCODINGS, LARGE_FILE, LANGUAGES, LONG, WIDE)
