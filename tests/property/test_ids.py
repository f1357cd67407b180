from hypothesis import given
from hypothesis import strategies as st

from pegboard.ids import IdSource, check_id

BODIES = st.text(
    "-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", min_size=1, max_size=64
)
TIMES = st.integers(0, 2**48 - 1).map(lambda number: f"{number:012x}" + "z" * 14)
NEAR_THE_END = st.builds(
    lambda head, run, tail: head + "z" * run + tail,
    st.sampled_from(["f" * 12, "f" * 11 + "e", "z" * 12, "_" * 12]),
    st.integers(0, 30),
    st.text("yz0_-", max_size=8),
)


@given(st.one_of(BODIES, TIMES, NEAR_THE_END), st.integers(1, 20))
def test_every_id_sorts_after_the_one_before(body: str, count: int) -> None:
    source = IdSource()
    ids = [f"prt_{body}"]

    for _ in range(count):
        ids.append(source.new("part", after=ids[-1]))

    assert ids == sorted(set(ids))


@given(st.one_of(BODIES, TIMES))
def test_what_follows_a_client_s_id_could_be_a_client_s_id(body: str) -> None:
    made = IdSource().new("part", after=f"prt_{body.rstrip('z')}")

    assert check_id("part", made) == made
