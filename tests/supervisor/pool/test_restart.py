"""Intensity and backoff: pure, time is an argument."""

import pytest

from supervisor.pool.restart import Intensity, backoff
from supervisor.pool.spec import Restart

POLICY = Restart(intensity=3, period=10.0, first_backoff=0.5, longest_backoff=4.0)


def test_allows_as_many_deaths_as_the_intensity() -> None:
    intensity = Intensity(POLICY)
    assert [intensity.allows(now) for now in (0.0, 1.0, 2.0)] == [True, True, True]


def test_gives_up_after_the_intensity() -> None:
    intensity = Intensity(POLICY)
    assert [intensity.allows(now) for now in (0.0, 1.0, 2.0, 3.0)] == [True, True, True, False]


def test_a_death_counts_until_the_period_is_over() -> None:
    intensity = Intensity(POLICY)
    assert [intensity.allows(now) for now in (0.0, 1.0, 2.0, 10.0)] == [True, True, True, False]


def test_a_death_older_than_the_period_counts_no_more() -> None:
    intensity = Intensity(POLICY)
    assert [intensity.allows(now) for now in (0.0, 1.0, 2.0, 10.1)] == [True, True, True, True]


def test_slow_deaths_are_allowed_for_ever() -> None:
    intensity = Intensity(POLICY)
    assert all(intensity.allows(now * 4.0) for now in range(1000))


def test_no_intensity_allows_no_death() -> None:
    assert not Intensity(Restart(intensity=0)).allows(0.0)


def test_forgets_every_death() -> None:
    intensity = Intensity(POLICY)
    assert [intensity.allows(now) for now in (0.0, 0.0, 0.0, 0.0)][-1] is False
    intensity.forget()
    assert intensity.allows(0.0)


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (5, 4.0), (10_000, 4.0)])
def test_the_backoff_doubles_up_to_the_longest(failures: int, seconds: float) -> None:
    assert backoff(failures, POLICY) == seconds
