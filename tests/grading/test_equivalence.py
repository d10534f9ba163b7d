"""Which answers are the same mathematics, in either order: labelled examples of every kind, and laws for all."""

import json
import threading
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsd.grading import equivalent
from rsd.grading.equivalence import equivalent_here
from tests.conftest import SHARED
from tests.grading.cases import PAIRS

LABELLED = [json.loads(line) for line in (SHARED / "grading/pairs.jsonl").read_text().splitlines()]


def both_ways(a: str, b: str) -> bool:
    """The verdict, which must not depend on the order."""
    verdict = equivalent_here(a, b)
    assert equivalent_here(b, a) is verdict, (a, b)
    return verdict


@pytest.mark.parametrize("row", LABELLED, ids=lambda row: f"{row['kind']}: {row['gold']} | {row['pred']}")
def test_labelled_pairs(row: dict[str, str]) -> None:
    assert both_ways(row["gold"], row["pred"]) is row["equal"]


@pytest.mark.parametrize("kind", PAIRS)
def test_other_pairs_of_the_same_kinds(kind: str) -> None:
    wrong = [(a, b, equal) for a, b, equal in PAIRS[kind] if both_ways(a, b) is not equal]
    assert wrong == []


def test_any_text_equals_itself() -> None:
    for text in (r"\unreadable{", "}{", "\x00\x1b[2J", "10^{5^{5^{5^{5^5}}}}", "{" * 100_000, "we cannot say"):
        assert both_ways(text, text)
        assert not both_ways(text, "7")


def test_the_public_function_works_outside_the_main_thread() -> None:
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.extend([equivalent("0.25", r"\frac{1}{4}"), equivalent("1", "2")]))
    thread.start()
    thread.join()
    assert results == [True, False]


# --- laws: an expression is written in two ways, and neither equals a neighbour of the other

integers = st.integers(-(10**9), 10**9)
small = st.integers(1, 99)


@given(integers)
@settings(deadline=None)  # a loaded machine is no failure
def test_thousands_separators(n: int) -> None:
    for written in (f"{n:,}", f"{n:,}".replace(",", "{,}"), f"{n:,}".replace(",", r"\,"), f"{n}.0", rf"\text{{{n}}}"):
        assert both_ways(str(n), written)
        assert not both_ways(str(n + 1), written)


@given(st.integers(1, 9999), st.integers(-40, 40))
@settings(deadline=None)
def test_e_notation_is_a_power_of_ten(mantissa: int, exponent: int) -> None:
    digits = f"{mantissa / 1000:.3f}"
    written = rf"{digits} \times 10^{{{exponent}}}"
    assert both_ways(f"{digits}e{exponent}", written)
    assert not both_ways(f"{digits}e{exponent + 1}", written)
    assert not both_ways(f"{mantissa / 1000 + 0.001:.3f}e{exponent}", written)


@given(st.integers(-999, 999), st.integers(2, 999))
@settings(deadline=None)
def test_fractions(numerator: int, denominator: int) -> None:
    written = rf"\frac{{{numerator}}}{{{denominator}}}"
    others = (rf"\dfrac{{{numerator}}}{{{denominator}}}", f"{numerator}/{denominator}",
              rf"{numerator} \div {denominator}", f"({numerator})*{denominator}^(-1)")  # fmt: skip
    for other in others:
        assert both_ways(written, other)
    assert not both_ways(written, f"{numerator + 1}/{denominator}")
    assert not both_ways(written, f"{written} + 1")
    value = Fraction(numerator, denominator)
    rounded = f"{float(value):.3f}"
    assert both_ways(written, rounded) is (Fraction(rounded) == value)


@given(st.decimals(-1000, 1000, places=4), st.data())
@settings(deadline=None)
def test_one_digit_changed(decimal: object, data: st.DataObject) -> None:
    text = str(decimal)
    place = data.draw(st.sampled_from([i for i, c in enumerate(text) if c.isdigit()]))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != text[place]]))
    changed = text[:place] + digit + text[place + 1 :]
    assert both_ways(text, changed) is (Fraction(text) == Fraction(changed))


@given(small, small, small)
@settings(max_examples=40, deadline=None)
def test_factored_and_expanded(a: int, b: int, c: int) -> None:
    factored, expanded = f"{c}(x+{a})(x-{b})", f"{c}x^2+{c * (a - b)}x-{a * b * c}"
    for other in (expanded, f"{c}*x**2 + {c * (a - b)}*x - {a * b * c}", rf"{c} \cdot (x-{b}) \cdot (x+{a})"):
        assert both_ways(factored, other)
    assert not both_ways(factored, expanded + "+1")
    assert not both_ways(factored, f"{c}(x+{a})(x-{b + 1})")
    assert not both_ways(factored, expanded.replace("x", "y"))


@given(small, small)
@settings(max_examples=40, deadline=None)
def test_roots_and_constants(a: int, b: int) -> None:
    assert both_ways(rf"\sqrt{{{a * a * b}}}", rf"{a}\sqrt{{{b}}}")
    assert both_ways(rf"\frac{{{a}\pi}}{{{b}}}", f"{a}*pi/{b}")
    assert not both_ways(rf"{a}\sqrt{{{b}}}", rf"{a}\sqrt{{{b + 1}}}")
    assert not both_ways(rf"\frac{{{a}\pi}}{{{b}}}", rf"\frac{{{a}\pi}}{{{b}}} + 1")
    assert not both_ways(rf"\frac{{1}}{{{a}!}}", rf"\frac{{1}}{{{a + 1}!}}")


@given(st.integers(-99, 99), st.integers(1, 99), st.sampled_from("(["), st.sampled_from(")]"))
@settings(max_examples=40, deadline=None)
def test_an_end_opened_or_closed(low: int, width: int, left: str, right: str) -> None:
    high = low + width
    written = f"{left}{low}, {high}{right}"
    signs = {"(": "<", ")": "<", "[": r"\le", "]": r"\le"}
    inequality = f"{low} {signs[left]} x {signs[right]} {high}"
    assert both_ways(written, inequality)
    assert both_ways(written, rf"x \in \left{left}{low},{high}\right{right}")
    flipped = {"(": "[", "[": "(", ")": "]", "]": ")"}
    for other in (f"{flipped[left]}{low}, {high}{right}", f"{left}{low}, {high}{flipped[right]}",
                  f"{left}{low}, {high + 1}{right}"):  # fmt: skip
        assert not both_ways(written, other)
        assert not both_ways(inequality, other)


@given(st.lists(integers, min_size=2, max_size=5, unique=True), st.randoms())
@settings(max_examples=40, deadline=None)
def test_order_counts_in_tuples_only(numbers: list[int], random: object) -> None:
    shuffled = list(numbers)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert both_ways(", ".join(map(str, numbers)), ", ".join(map(str, shuffled)))
    assert both_ways(", ".join(map(str, numbers)), rf"\{{{', '.join(map(str, shuffled))}\}}")
    assert both_ways(f"({', '.join(map(str, numbers))})", f"({', '.join(map(str, shuffled))})") is (numbers == shuffled)
    assert not both_ways(", ".join(map(str, numbers)), ", ".join(map(str, numbers[1:])))


PIECES = [
    *(
        "1",
        "23",
        "x",
        "+",
        "-",
        "*",
        "/",
        "^",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        r"\frac",
        r"\sqrt",
        ",",
        "=",
        "<",
        r"\le",
        "!",
    ),
    *("|", "_", r"\text{ and }", r"\text{cm}", r"\pi", "e", "i", r"\cup", r"\infty", "%", ":", r"\pm", " ", "$", r"\{"),
    *(
        r"\}",
        r"\left",
        r"\right",
        "sin",
        "log",
        r"\begin{pmatrix}",
        r"\end{pmatrix}",
        "&",
        r"\\",
        "0.5",
        "...",
        "'",
        "or",
    ),
]


@given(
    st.lists(st.sampled_from([*PIECES, "9" * 40]), max_size=14).map("".join),
    st.sampled_from(["7", "x+1", "(1,2)", "x>2", "1,2"]),
)
@settings(max_examples=300, deadline=None)
def test_nonsense_never_raises_and_is_symmetric(nonsense: str, other: str) -> None:
    from rsd.grading.matching import matches
    from rsd.grading.reading import read

    assert equivalent_here(nonsense, nonsense)
    for a in read(nonsense):
        for b in read(other):
            assert matches(a, b) is matches(b, a)
