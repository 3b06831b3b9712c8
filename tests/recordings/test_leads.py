import pytest

from ecgquorum.recordings.leads import STANDARD_LEADS, is_other_signal, normalise_lead


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


@pytest.mark.parametrize(
    "name", ["RESP", "Resp", "EEG Fpz-Cz", "Fp1", "C3-A2", "Cz", "EOG", "ABP", "PLETH", "SpO2", "Status"]
)
def test_signals_that_are_no_ecg_are_known_by_name(name):
    assert is_other_signal(name)


@pytest.mark.parametrize(
    "name", [*STANDARD_LEADS, "ECG", "EKG1", "V", "MLII", "MCL1", "X", "CC5", "ES", "Abdomen_1", "ch2", ""]
)
def test_leads_are_not_taken_for_other_signals(name):
    assert not is_other_signal(name)
