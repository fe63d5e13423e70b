"""Intensity, backoff and the pause of a failed category: pure, time and chance are arguments."""

import random
from dataclasses import replace

import pytest

from supervisor.pool.restart import Intensity, Restarts, backoff
from supervisor.pool.spec import Restart
from tests.each_row import each_row

POLICY = Restart(intensity=3, period=10.0, pause=60.0, first_backoff=0.5, longest_backoff=4.0, jitter=0.0)
NEVER_OFTEN = replace(POLICY, intensity=1000)


def never() -> float:
    return 0.0


@each_row(
    ("milliseconds", "allowed"),
    [
        ((0, 1000, 2000), True),
        ((0, 0, 0), True),
        ((0, 1000, 2000, 3000), False),
        ((0, 0, 0, 0), False),
        ((0, 1000, 2000, 9_999), False),
        ((0, 1000, 2000, 10_000), False),  # R >= Now - Period: OTP's add_restart/3 counts one of exactly a period ago
        ((0, 1000, 2000, 10_001), True),
        ((0, 1000, 2000, 10_001, 11_000), False),
        ((0, 1000, 2000, 10_001, 11_001), True),
        (tuple(range(0, 100_000, 3334)), True),
        (tuple(range(0, 100_000, 3333)), False),
    ],
    ids=str,
)
def test_no_more_deaths_than_the_intensity_are_allowed_within_the_period(
    milliseconds: tuple[int, ...], allowed: bool
) -> None:
    intensity = Intensity(POLICY)
    *before, last = [intensity.allows(now / 1000) for now in milliseconds]
    assert last == allowed
    assert all(before[: POLICY.intensity])


def test_no_intensity_allows_no_death() -> None:
    assert not Intensity(Restart(intensity=0)).allows(0.0)


@each_row(("failures", "seconds"), [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (5, 4.0), (10_000, 4.0)])
def test_the_backoff_doubles_up_to_the_longest(failures: int, seconds: float) -> None:
    assert backoff(failures, POLICY, 0.999) == seconds


@pytest.mark.parametrize("failures", [1, 3, 40])
def test_chance_takes_no_more_off_the_backoff_than_the_jitter(failures: int) -> None:
    spread = replace(POLICY, jitter=0.25)
    whole = backoff(failures, POLICY, 0.0)
    assert backoff(failures, spread, 0.0) == whole
    assert backoff(failures, spread, 1.0) == whole * 0.75


def test_the_same_seed_spreads_the_starts_in_the_same_way() -> None:
    def starts(seed: int) -> list[float]:
        restarts = Restarts(replace(NEVER_OFTEN, jitter=0.25), random.Random(seed).random)
        return [restarts.died(float(now), "exited") for now in range(20)]

    assert starts(7) == starts(7)
    assert starts(7) != starts(8)


def test_a_category_is_failed_for_exactly_its_pause() -> None:
    restarts = _failed_at(2.0)
    assert [restarts.failed(now) for now in (2.0, 61.999, 62.0)] == [True, True, False]
    assert restarts.failure is not None  # nobody has seen a worker yet
    assert "died too often, the last one exited" in restarts.failure.describe(2.0)
    assert "tried again in 60 s" in restarts.failure.describe(2.0)
    assert "tried again just now" in restarts.failure.describe(62.0)


def test_a_death_during_the_pause_waits_for_its_end_and_does_not_prolong_it() -> None:
    restarts = _failed_at(2.0)
    assert restarts.died(30.0, "was killed") == 62.0
    assert restarts.ended(31.0) == 62.0
    assert restarts.refused(32.0, "refused to serve") == 62.0
    assert not restarts.failed(62.0)


def test_after_the_pause_a_category_has_all_of_its_intensity_again() -> None:
    restarts = _failed_at(2.0, replace(POLICY, pause=5.0))  # shorter than the period
    starts = [restarts.died(7.0, "exited") for _ in range(POLICY.intensity)]
    assert starts == [7.5, 8.0, 9.0]
    assert restarts.died(7.0, "exited") == 12.0


def test_a_worker_that_was_ready_in_the_pause_gives_no_new_intensity() -> None:
    restarts = _failed_at(2.0)
    restarts.failure = None
    assert restarts.died(3.0, "exited") == 63.0


def test_a_refusal_fails_the_category_at_once() -> None:
    restarts = Restarts(POLICY, never)
    assert restarts.refused(5.0, "refused to serve without landlock") == 65.0
    assert restarts.failed(5.0)


def test_an_end_that_was_ordered_is_no_death() -> None:
    restarts = Restarts(POLICY, never)
    assert {restarts.ended(0.0) for _ in range(100)} == {0.5}
    assert restarts.died(0.0, "exited") == 0.5


def test_a_death_after_a_quiet_period_is_the_first_in_a_row() -> None:
    restarts = Restarts(NEVER_OFTEN, never)
    starts = [(now, restarts.died(now, "exited") - now) for now in (0.0, 1.0, 11.0, 21.001)]
    assert starts == [(0.0, 0.5), (1.0, 1.0), (11.0, 2.0), (21.001, pytest.approx(0.5))]


def _failed_at(now: float, policy: Restart = POLICY) -> Restarts:
    restarts = Restarts(policy, never)
    for _ in range(POLICY.intensity):
        restarts.died(now, "exited")
    restarts.died(now, "exited")
    return restarts
