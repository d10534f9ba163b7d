"""Word problems about the quantities of several people, some of which nobody asks about.

    from random import Random
    problem = story(Random(0), level=2)
    problem.question   # "Mia has 12 pens. Ben has 3 times as many pens as Mia. Ben has 40 keys. ..."
    problem.steps      # ("Ben has 12*3=36 pens.\n\n", "Together they have 12+36=48 pens.\n\n", ...)

Each person's quantity follows from an earlier person's. A distractor tells of another thing that one of them has, or
of somebody else; the solution states what leads to the answer and nothing else.
"""

from random import Random

from rsd.tiny.problems import LARGEST, NAMES, THINGS, WordProblem, boxed, operation

_RELATIONS = {
    "+": "{name} has {n} more {thing} than {other}.",
    "-": "{name} has {n} fewer {thing} than {other}.",
    "*": "{name} has {n} times as many {thing} as {other}.",
    "/": "{name} has 1/{n} as many {thing} as {other}.",
}


def story(rng: Random, level: int) -> WordProblem:
    """Generate a problem that takes `level` (1 to 10) operations on the quantities of several people."""
    names = rng.sample(list(NAMES), len(NAMES))
    thing, other_thing = rng.sample(THINGS, 2)
    asked = rng.choice(("one", "cost", "together", "difference"))
    related = level - (asked != "one")
    pair = asked in ("together", "difference")
    people = [(names.pop(), rng.randint(2, 99))]
    sentences = [f"{people[0][0]} has {people[0][1]} {thing}."]
    steps = []
    if pair and not related:
        people.append((names.pop(), rng.randint(2, 99)))
        sentences.append(f"{people[1][0]} has {people[1][1]} {thing}.")
    for _ in range(related):
        (other, value), name = people[-1], names.pop()
        sign, n, result = operation(rng, value)
        sentences.append(_RELATIONS[sign].format(name=name, n=n, thing=thing, other=other))
        steps.append(f"{name} has {value}{sign}{n}={result} {thing}.\n\n")
        people.append((name, result))
    for kind in rng.sample(("thing", "person"), rng.randint(1, 2)):
        place = rng.randint(1, len(sentences))
        known = [name for name, _ in people if any(name in sentence for sentence in sentences[:place])]
        owner, owned = (rng.choice(known), other_thing) if kind == "thing" else (names.pop(), thing)
        sentences.insert(place, f"{owner} has {rng.randint(2, 99)} {owned}.")
    name, value = people[-1]
    if asked == "one":
        sentences.append(f"How many {thing} does {name} have?")
    elif asked == "cost":
        n = rng.randint(2, 9)
        steps.append(f"They cost {value}*{n}={value * n} dollars.\n\n")
        sentences.append(f"Each {thing[:-1]} costs {n} dollars. How many dollars do the {thing} of {name} cost?")
        value *= n
    else:
        other, second = rng.choice(people[:-1])
        if asked == "together":
            steps.append(f"Together they have {second}+{value}={second + value} {thing}.\n\n")
            sentences.append(f"How many {thing} do {other} and {name} have together?")
            value += second
        else:
            if second > value:
                other, second, name, value = name, value, other, second
            steps.append(f"{name} has {value}-{second}={value - second} more {thing}.\n\n")
            sentences.append(f"How many more {thing} does {name} have than {other}?")
            value -= second
    if not 1 <= value <= LARGEST:
        return story(rng, level)
    return WordProblem(" ".join(sentences), (*steps, boxed(value)), str(value), level)
