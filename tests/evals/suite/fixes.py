"""Cases in which something is wrong and has to be put right."""

from evals.case import Case, bash, call, edit, read, step

_PAGES = """
    def page(items, number, size):
        start = number * size
        return items[start : start + size]


    def page_count(items, size):
        return len(items) // size
    """
_TEST_PAGES = """
    import unittest

    from pages import page, page_count


    class Pages(unittest.TestCase):
        def test_pages_are_numbered_from_one(self):
            self.assertEqual(page("abcdef", 1, 2), "ab")

        def test_the_last_page_may_be_short(self):
            self.assertEqual(page_count("abcde", 2), 3)
    """

FAILING_TEST = Case(
    name="failing-test",
    tries="mend the cause of failing tests, and leave the tests",
    task="The tests in test_pages.py fail. Please make them pass.",
    files={"pages.py": _PAGES, "test_pages.py": _TEST_PAGES},
    held=("test_pages.py",),
    check="""
        def test_pages(self):
            from pages import page, page_count
            self.assertEqual([page("abcde", n, 2) for n in (1, 2, 3)], ["ab", "cd", "e"])
            self.assertEqual([page_count("x" * n, 2) for n in (0, 1, 2, 3)], [0, 1, 1, 2])
        """,
    reference=(
        step(bash("python3 -m unittest -q")),
        read("pages.py", "test_pages.py"),
        step(
            edit("pages.py", "number * size", "(number - 1) * size"),
            edit("pages.py", "len(items) // size", "-(-len(items) // size)"),
        ),
        step(bash("python3 -m unittest -q")),
        step(text="Both tests pass: pages count from 1, and a short last page counts."),
    ),
    wrong={
        "test_pages.py was changed": (
            read("test_pages.py"),
            step(call("write", filePath="test_pages.py", content="import unittest\n")),
            step(text="The tests pass."),
        ),
    },
)

REPRODUCE = Case(
    name="reproduce-bug",
    tries="a report without a place: reproduce, find the cause, mend it",
    task=(
        "A customer says that somebody who was born on 2000-02-29 is shown as 17 on 2018-02-28 and"
        " as 18 on 2018-03-01, which is right, but that people born on 1990-06-15 are shown as a"
        " year older some days before their birthday. Find out why and fix it."
    ),
    files={
        "people/__init__.py": "",
        "people/age.py": """
            from datetime import date

            DAYS_OF_A_YEAR = 365


            def age_on(birth: date, day: date) -> int:
                \"\"\"Whole years of a person's life.\"\"\"
                return (day - birth).days // DAYS_OF_A_YEAR
            """,
        "people/card.py": """
            from people.age import age_on


            def card(name, birth, day):
                return f"{name} ({age_on(birth, day)})"
            """,
    },
    check="""
        def test_ages(self):
            from datetime import date
            from people.age import age_on
            from people.card import card
            born = date(1990, 6, 15)
            self.assertEqual(age_on(born, date(2024, 6, 14)), 33)
            self.assertEqual(age_on(born, date(2024, 6, 15)), 34)
            self.assertEqual(age_on(date(2000, 2, 29), date(2018, 2, 28)), 17)
            self.assertEqual(age_on(date(2000, 2, 29), date(2018, 3, 1)), 18)
            self.assertEqual(card("Ann", born, date(2024, 1, 1)), "Ann (33)")
        """,
    reference=(
        step(call("grep", pattern="age")),
        read("people/age.py"),
        step(
            edit(
                "people/age.py",
                "(day - birth).days // DAYS_OF_A_YEAR",
                "day.year - birth.year - ((day.month, day.day) < (birth.month, birth.day))",
            ),
            edit("people/age.py", "\nDAYS_OF_A_YEAR = 365\n", ""),
        ),
        step(text="people/age.py counted years of 365 days; it now compares the birthday."),
    ),
)

EDGE = Case(
    name="edge-case",
    tries="a missing edge case, refused as the rest of the module refuses",
    task="chunks() in batches.py loses everything for a size below 0, and for 0 complains about"
    " range(). Such sizes should be refused.",
    files={
        "batches.py": """
            def first(items, count):
                if count < 0:
                    raise ValueError(f"count must not be negative: {count}")
                return items[:count]


            def chunks(items, size):
                return [items[start : start + size] for start in range(0, len(items), size)]
            """,
    },
    check="""
        def test_sizes(self):
            from batches import chunks, first
            for size in (0, -1, -7):
                for items in ([1, 2], []):
                    with self.assertRaisesRegex(ValueError, str(size)):
                        chunks(items, size)
            self.assertEqual(chunks([1, 2, 3], 2), [[1, 2], [3]])
            self.assertEqual(first([1, 2], 1), [1])
        """,
    reference=(
        read("batches.py"),
        step(
            edit(
                "batches.py",
                "def chunks(items, size):\n",
                "def chunks(items, size):\n    if size < 1:\n"
                '        raise ValueError(f"size must be positive: {size}")\n',
            )
        ),
        step(text="chunks() raises ValueError for a size below 1."),
    ),
)

AMBIGUOUS = Case(
    name="ambiguous-place",
    tries="a line that occurs three times, of which one is meant",
    task="Raise the timeout of the staging environment to 90 seconds in deploy.py.",
    files={
        "deploy.py": """
            def local():
                return {
                    "host": "localhost",
                    "timeout": 30,
                }


            def staging():
                return {
                    "host": "staging.example",
                    "timeout": 30,
                }


            def production():
                return {
                    "host": "www.example",
                    "timeout": 30,
                }
            """,
    },
    check="""
        def test_timeouts(self):
            from deploy import local, production, staging
            self.assertEqual([local()["timeout"], staging()["timeout"]], [30, 90])
            self.assertEqual(production(), {"host": "www.example", "timeout": 30})
        """,
    reference=(
        read("deploy.py"),
        step(
            edit(
                "deploy.py",
                '"staging.example",\n        "timeout": 30',
                '"staging.example",\n        "timeout": 90',
            )
        ),
        step(text="staging() in deploy.py waits 90 seconds."),
    ),
    wrong={
        "AssertionError": (
            read("deploy.py"),
            step(edit("deploy.py", '"timeout": 30', '"timeout": 90', replaceAll=True)),
            step(text="Done."),
        ),
    },
)

MONOREPO = Case(
    name="monorepo",
    tries="work in a folder of a larger repository, beside code of the same names",
    task="total() must round half cents up, not to even. Fix it here.",
    folder="packages/billing",
    files={
        f"packages/{name}/{path}": content
        for name in ("billing", "shipping")
        for path, content in {
            "rounding.py": """
                from decimal import Decimal


                def cents(amount):
                    return amount.quantize(Decimal("0.01"))
                """,
            "total.py": """
                from rounding import cents


                def total(amounts):
                    return cents(sum(amounts))
                """,
        }.items()
    },
    held=("packages/shipping/*", "*.md"),
    check="""
        def test_totals(self):
            from decimal import Decimal as D
            sys.path.insert(0, "packages/billing")
            from total import total
            self.assertEqual(total([D("0.125")]), D("0.13"))
            self.assertEqual(total([D("0.1"), D("0.0251")]), D("0.13"))
            self.assertEqual(total([D("0.135"), D("1")]), D("1.14"))
        """,
    reference=(
        read("total.py", "rounding.py"),
        step(
            edit("rounding.py", "import Decimal", "import ROUND_HALF_UP, Decimal"),
            edit("rounding.py", 'Decimal("0.01")', 'Decimal("0.01"), rounding=ROUND_HALF_UP'),
        ),
        step(text="cents() in packages/billing/rounding.py rounds half cents up."),
    ),
    wrong={
        "shipping/rounding.py was changed": (
            step(
                bash(
                    'sed -i \'s/Decimal("0.01")/Decimal("0.01"), rounding="ROUND_HALF_UP"/\''
                    " rounding.py ../shipping/rounding.py"
                )
            ),
            step(text="Done."),
        ),
    },
)

CASES = (FAILING_TEST, REPRODUCE, EDGE, AMBIGUOUS, MONOREPO)
