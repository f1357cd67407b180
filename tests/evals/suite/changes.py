"""Cases in which something is added or changed as the user asks."""

from evals.case import Case, bash, call, edit, read, step

ADD = Case(
    name="add-function",
    tries="a function in the style of its module",
    task="Add median() to averages.py. Of an even number of values it is the mean of the two middle"
    " ones.",
    files={
        "averages.py": '''
            """Averages of numbers."""

            from collections.abc import Sequence

            __all__ = ["mean", "midrange"]


            def mean(values: Sequence[float]) -> float:
                """The sum of the values, divided by their number.

                :raises ValueError: when there are none.
                """
                if not values:
                    raise ValueError("no values")
                return sum(values) / len(values)


            def midrange(values: Sequence[float]) -> float:
                """The middle between the least and the greatest value.

                :raises ValueError: when there are none.
                """
                if not values:
                    raise ValueError("no values")
                return (min(values) + max(values)) / 2
            ''',
    },
    check="""
        def test_median(self):
            import averages
            self.assertEqual(averages.median([3, 1, 2]), 2)
            self.assertEqual(averages.median((4, 1, 3, 2)), 2.5)
            values = [3, 1, 2]
            averages.median(values)
            self.assertEqual(values, [3, 1, 2])
            with self.assertRaisesRegex(ValueError, "no values"):
                averages.median([])

        def test_style(self):
            import averages
            self.assertIn("median", averages.__all__)
            self.assertIn(":raises ValueError:", averages.median.__doc__)
            self.assertEqual(set(averages.median.__annotations__), {"values", "return"})
        """,
    reference=(
        read("averages.py"),
        step(
            edit("averages.py", '["mean", "midrange"]', '["mean", "median", "midrange"]'),
            edit(
                "averages.py",
                "def midrange(",
                'def median(values: Sequence[float]) -> float:\n    """The value in the middle.\n\n'
                '    :raises ValueError: when there are none.\n    """\n    if not values:\n'
                '        raise ValueError("no values")\n    ordered = sorted(values)\n'
                "    half = len(ordered) // 2\n"
                "    return (ordered[half] + ordered[-half - 1]) / 2\n\n\ndef midrange(",
            ),
        ),
        step(text="averages.py has median()."),
    ),
)

_NAMES = ("api.py", "web.py", "jobs.py")
_USER = """
    from users import fetch_user, fetch_user_agent


    def show(number):
        return fetch_user(number)["id"], fetch_user_agent()
    """

RENAME = Case(
    name="rename",
    tries="a name in many files, with another that it begins",
    task="Rename the function fetch_user to load_user everywhere. fetch_user_agent is another thing"
    " and keeps its name.",
    files={
        "users.py": """
            def fetch_user(number):
                return {"id": number, "agent": fetch_user_agent()}


            def fetch_user_agent():
                return "agent/1"
            """,
        **dict.fromkeys(_NAMES, _USER),
        "routes.json": '{"user": "users:fetch_user", "agent": "users:fetch_user_agent"}\n',
        "README.md": "Call `fetch_user(1)` for a user, `fetch_user_agent()` for the agent.\n",
    },
    check="""
        def test_names(self):
            paths = [each for end in ("py", "json", "md") for each in Path().glob(f"*.{end}")]
            text = "".join(path.read_text() for path in paths)
            self.assertEqual(len(re.findall(r"\\bfetch_user\\b", text)), 0)
            self.assertEqual(len(re.findall(r"\\bload_user\\b", text)), 9)
            self.assertEqual(len(re.findall(r"\\bfetch_user_agent\\b", text)), 10)

        def test_use(self):
            import api, jobs, users, web
            for module in (api, web, jobs):
                self.assertEqual(module.show(3), (3, "agent/1"))
            routes = json.loads(Path("routes.json").read_text())
            self.assertEqual(routes["user"], "users:load_user")
        """,
    reference=(
        step(call("grep", pattern=r"fetch_user\b")),
        step(bash(r"sed -i 's/\bfetch_user\b/load_user/g' *.py routes.json README.md")),
        step(call("grep", pattern="(fetch|load)_user")),
        step(text="Renamed in four modules, routes.json and README.md."),
    ),
    wrong={
        "AssertionError: 0 != 10": (
            step(bash("sed -i 's/fetch_user/load_user/g' *.py routes.json README.md")),
            step(text="Renamed."),
        ),
        "AssertionError: 2 != 0": (
            step(bash(r"sed -i 's/\bfetch_user\b/load_user/g' *.py")),
            step(text="Renamed."),
        ),
    },
)

REFACTOR = Case(
    name="refactor",
    tries="less code with the same behaviour",
    task="net(), gross() and refund() in prices.py round in the same way, written three times."
    " Move that to one function. The results must stay the same.",
    files={
        "prices.py": """
            from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal


            def net(amount):
                if amount < 0:
                    raise ValueError("negative")
                return (amount / Decimal("1.19")).quantize(Decimal("0.01"), ROUND_HALF_UP)


            def gross(amount):
                if amount < 0:
                    raise ValueError("negative")
                return (amount * Decimal("1.19")).quantize(Decimal("0.01"), ROUND_HALF_UP)


            def refund(amount):
                return -(amount / 2).quantize(Decimal("0.01"), ROUND_HALF_UP)


            def statistics(amounts):
                return sum(amounts).quantize(Decimal("1"), ROUND_HALF_EVEN)
            """,
    },
    check="""
        def test_behaviour(self):
            from decimal import Decimal as D
            from prices import gross, net, refund, statistics
            self.assertEqual([net(D("1.19")), gross(D("0.50"))], [D("1.00"), D("0.60")])
            self.assertEqual([refund(D("0.05")), refund(D("-1"))], [D("-0.03"), D("0.50")])
            self.assertEqual(statistics([D("0.5"), D("2")]), D("2"))
            for function in (net, gross):
                self.assertRaises(ValueError, function, D(-1))

        def test_one_place(self):
            tree = ast.parse(Path("prices.py").read_text())
            called = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
            self.assertLessEqual([node.attr for node in called].count("quantize"), 2)
        """,
    reference=(
        read("prices.py"),
        step(
            edit(
                "prices.py",
                "def net(",
                "def _cents(amount):\n"
                '    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)\n\n\ndef net(',
            )
        ),
        step(
            bash(
                r"sed -i 's/return \(-\?\)(\(.*\))\.quantize(Decimal(\"0.01\"), ROUND_HALF_UP)"
                r"/return \1_cents(\2)/' prices.py"
            )
        ),
        step(text="_cents() in prices.py rounds for all three."),
    ),
)

CONFIG = Case(
    name="config-change",
    tries="two settings of a file, and nothing else",
    task="Set the line length to 110 and switch on the rules B, in settings.toml.",
    files={
        "settings.toml": """
            # Kept in step with the editor.
            [style]
            line-length = 100  # columns
            rules = ["E", "F"]

            [style.tests]
            line-length = 100
            """,
    },
    check="""
        def test_settings(self):
            text = Path("settings.toml").read_text()
            style = {"line-length": 110, "rules": ["E", "F", "B"], "tests": {"line-length": 100}}
            found = tomllib.loads(text)["style"]
            self.assertEqual({**found, "rules": sorted(found["rules"])},
                             {**style, "rules": sorted(style["rules"])})
            self.assertIn("# Kept in step with the editor.", text)
            self.assertIn("# columns", text)
        """,
    reference=(
        read("settings.toml"),
        step(
            edit("settings.toml", "100  # columns", "110  # columns"),
            edit("settings.toml", '["E", "F"]', '["E", "F", "B"]'),
        ),
        step(text="Both are set for the code; [style.tests] stays at 100."),
    ),
)

OPTION = Case(
    name="cli-option",
    tries="an option of a command line, with its help and its default",
    task="Give order.py an option -r/--reverse that turns the order round. Without it nothing"
    " changes.",
    files={
        "order.py": '''
            """Prints the words of the command line in order."""

            import argparse


            def main(arguments=None):
                parser = argparse.ArgumentParser(description=__doc__)
                parser.add_argument("words", nargs="*")
                parser.add_argument("-u", "--unique", action="store_true", help="each word once")
                options = parser.parse_args(arguments)
                words = set(options.words) if options.unique else options.words
                for word in sorted(words):
                    print(word)


            if __name__ == "__main__":
                main()
            ''',
    },
    check="""
        def shown(self, *arguments):
            from order import main
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
                main(list(arguments))
            return out.getvalue()

        def test_order(self):
            self.assertEqual(self.shown("b", "a", "b").split(), ["a", "b", "b"])
            self.assertEqual(self.shown("-r", "b", "a", "b").split(), ["b", "b", "a"])
            self.assertEqual(self.shown("--reverse", "-u", "b", "a", "b").split(), ["b", "a"])

        def test_help(self):
            line = next(each for each in self.shown("-h").splitlines() if "-r, --reverse" in each)
            self.assertRegex(line, r"--reverse\\s+\\w+")
        """,
    reference=(
        read("order.py"),
        step(
            edit(
                "order.py",
                'help="each word once")\n',
                'help="each word once")\n    parser.add_argument('
                '"-r", "--reverse", action="store_true", help="the last word first")\n',
            ),
            edit("order.py", "sorted(words)", "sorted(words, reverse=options.reverse)"),
        ),
        step(bash("python3 order.py -r a c b")),
        step(text="order.py has -r/--reverse."),
    ),
)

DOCUMENTS = Case(
    name="documents",
    tries="a page that has fallen behind the code",
    task="The table of options in README.md is out of date. Bring it in line with tool.py.",
    files={
        "tool.py": """
            import argparse

            parser = argparse.ArgumentParser()
            parser.add_argument("--format", default="json", help="json or text")
            parser.add_argument("--limit", type=int, default=50, help="the most results")
            """,
        "README.md": """
            # Tool

            | option | default | meaning |
            |---|---|---|
            | `--limit` | 20 | the most results |
            | `--colour` | auto | whether to use colours |

            Written for the team, with love.
            """,
    },
    held=("tool.py",),
    check="""
        def test_table(self):
            text = Path("README.md").read_text()
            rows = [[each.strip(" `") for each in line.strip("| ").split("|")]
                    for line in text.splitlines() if line.startswith("|")]
            table = {row[0].split("`")[0].split()[0]: row[1] for row in rows[2:]}
            self.assertEqual(table, {"--format": "json", "--limit": "50"})
            self.assertTrue(text.startswith("# Tool"))
            self.assertIn("Written for the team, with love.", text)
        """,
    reference=(
        read("tool.py", "README.md"),
        step(
            edit("README.md", "| 20 |", "| 50 |"),
            edit(
                "README.md",
                "| `--colour` | auto | whether to use colours |",
                "| `--format` | json | json or text |",
            ),
        ),
        step(text="The table lists --limit (50) and --format (json); --colour is gone."),
    ),
)

CASES = (ADD, RENAME, REFACTOR, CONFIG, OPTION, DOCUMENTS)
