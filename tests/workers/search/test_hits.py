import random
from collections.abc import Iterable

from workers.search.hits import First
from workers.tree.glob import SEPARATOR, Pattern

MOST = 20


class Counting(Pattern):
    """A pattern that counts what it is asked about."""

    asked = 0

    def select(self, keys: Iterable[str]) -> list[str]:
        wanted = list(keys)
        self.asked += len(wanted)
        return super().select(wanted)


def batches(seed: int) -> list[list[str]]:
    """Return paths in some order, as a program with threads tells them."""
    chance = random.Random(seed)
    paths = [f"{chance.choice('ab')}/{chance.choice(['c', 'c-d', 'c.d'])}/{number}" for number in range(2000)]
    chance.shuffle(paths)
    return [paths[start : start + 50] for start in range(0, len(paths), 50)]


def test_files_that_come_in_any_order_are_those_that_are_first_by_component() -> None:
    for seed in range(10):
        told = batches(seed)
        first: First[None] = First(MOST, Pattern("**/*[02468]"))
        for batch in told:
            first.add_files([path.replace("/", SEPARATOR) for path in batch], None)
        matching = [path for batch in told for path in batch if path[-1] in "02468"]
        assert [path for path, _, _ in first.first()] == sorted(matching, key=lambda path: path.split("/"))[:MOST]
        assert first.more


def test_once_there_are_enough_files_only_those_before_them_are_matched() -> None:
    pattern = Counting("**")
    first: First[None] = First(MOST, pattern)
    for batch in batches(0):
        first.add_files([path.replace("/", SEPARATOR) for path in batch], None)
    assert pattern.asked < 400
    assert first.count == pattern.asked
