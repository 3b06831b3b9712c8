"""Lines of keys and values above a table."""

import pytest

from ecgquorum.recordings.formats.table_facts import states_fact


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (("Lead", "Lead I"), True),
        (("Einheit", "uV"), True),
        (("Rate", "512 Hz"), True),
        (("I", "II"), False),
        (("0.01", "-0.02"), False),
        (("Lead", "Lead I", "uV"), False),
        (("Einheit",), False),
    ],
)
def test_titles_and_numbers_are_no_facts(cells, expected):
    assert states_fact(cells) is expected
