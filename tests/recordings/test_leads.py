import pytest

from ecgquorum.recordings.leads import STANDARD_LEADS, is_other_signal, normalise_lead, normalise_leads, note_left_out


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


CHEST = tuple(f"C{number}" for number in range(1, 7))
LIMBS = STANDARD_LEADS[:6]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((*LIMBS, *CHEST), STANDARD_LEADS),
        (("ecg i", "II", "c2", "C5"), ("I", "II", "V2", "V5")),
        (("R", "L", "F", "N", *CHEST), ("R", "L", "F", "N", *STANDARD_LEADS[6:])),
        (CHEST, STANDARD_LEADS[6:]),
        (("II", "C1", "RESP"), ("II", "V1", "RESP")),
        (("ECG C1", "Lead C4", "MDC_ECG_LEAD_C6"), ("V1", "V4", "V6")),
    ],
)
def test_iec_names_of_chest_leads(names, expected):
    assert normalise_leads(names) == expected


@pytest.mark.parametrize(
    "names",
    [
        ("C3", "C4", "Cz"),
        ("I", "II", "C3", "C4"),
        (*CHEST, "Cz"),
        (*LIMBS, *CHEST, "Fp1"),
        ("I", "C1", "C2", "EEG O1-A2"),
        ("I", "C1", "EOG left"),
        ("ECG", "C1", "C2"),
        ("L", "R", "C1"),
        ("I", "C1", "V1"),
        ("I", "C1", "C1"),
        CHEST[:5],
    ],
)
def test_electrodes_of_an_eeg_are_no_chest_leads(names):
    spelled = normalise_leads(names)
    assert all(is_other_signal(name) for name in spelled if name in CHEST)
    assert spelled == tuple(map(normalise_lead, names))


def test_a_note_names_every_signal_that_is_left_out():
    assert note_left_out([]) == ()
    assert note_left_out(["RESP", "", "a\nb", "RESP"]) == (
        "left out, no ECG leads: RESP, a signal without a name, a b",
    )
