import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum.recordings.formats.even_times import _rounding_unit, find_step


@given(
    rate_hz=st.sampled_from([100, 125, 128, 180, 250, 256, 300, 360, 500, 512, 1000]),
    decimals=st.integers(3, 9),
    start=st.sampled_from([0.0, 1.0, 1234.567]),
    n_times=st.integers(50, 3000),
)
def test_the_rate_of_rounded_times_is_found(rate_hz, decimals, start, n_times):
    times = np.round(start + np.arange(n_times) / rate_hz, decimals)
    step, _ = find_step(times)
    if 10.0**-decimals < 1 / rate_hz or rate_hz == 1000:
        assert step is not None
        assert abs(step * rate_hz - 1) <= 2 * 10.0**-decimals * rate_hz / (n_times - 1)


@given(rate_hz=st.sampled_from([250, 300, 360]), decimals=st.integers(4, 9), place=st.integers(1, 998))
def test_a_dropped_or_doubled_sample_is_noticed(rate_hz, decimals, place):
    times = np.round(np.arange(1000) / rate_hz, decimals)
    assert find_step(np.delete(times, place))[0] is None
    assert find_step(np.insert(times, place, times[place]))[0] is None


def test_times_that_do_not_increase_have_no_step():
    assert find_step(np.array([0.0]))[0] is None
    assert find_step(np.array([0.0, 0.0, 0.0]))[0] is None
    assert find_step(np.array([0.2, 0.1, 0.0]))[0] is None
    assert find_step(np.array([0.0, np.nan, 0.2])) == (None, 1)


def test_times_that_are_rounded_to_more_than_a_step_have_none():
    assert find_step(np.floor(np.arange(100) / 2) / 1000) == (None, 1), "the first step is 0 already"


def test_times_since_1970_are_multiples_of_their_rounding():
    """A double has a quarter of a microsecond left there, so that no time is a whole number of milliseconds."""
    times = 1.7e9 + np.round(np.arange(1000) / 300, 3)
    assert _rounding_unit(times) == 1e-3
    step, _ = find_step(times)
    assert step is not None and abs(step * 300 - 1) < 1e-3
