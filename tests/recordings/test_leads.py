import pytest

from ecgquorum.recordings.leads import STANDARD_LEADS, normalise_lead


@pytest.mark.parametrize("name", STANDARD_LEADS)
def test_every_spelling_of_a_standard_lead_is_recognised(name):
    for spelling in (
        name,
        name.lower(),
        name.upper(),
        f" {name} ",
        f"Lead {name}",
        f"ECG {name}",
        f"MDC_ECG_LEAD_{name}",
    ):
        assert normalise_lead(spelling) == name


def test_unnamed_and_unknown_leads_are_kept():
    assert normalise_lead("ecg") == "ECG"
    assert normalise_lead("MLII") == "MLII"
    assert normalise_lead(" X ") == "X"
