"""Patient, time and device: what files state, and what cannot be true."""

import datetime

import edfio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import read
from ecgquorum.recordings import Acquisition


def test_impossible_facts_are_unknown():
    assert not Acquisition(" ", "\x00\n", "unknown", "31.1.1950", 900, "yesterday", "")
    assert Acquisition(age_years=float("nan")) == Acquisition() == Acquisition(time="2024-13-01")


def test_facts_are_spelled_alike():
    one = Acquisition(17, "DOE\x00\nJANE", "F", "19500131", "74", "2024-01-31 12:30", "MAC 55")
    assert one == Acquisition("17", "DOE JANE", "female", "1950-01-31", 74.0, "2024-01-31T12:30:00", "MAC 55")


@given(st.text(), st.text())
def test_texts_are_one_short_line(name, device):
    one = Acquisition(name=name, device=device)
    for text in (one.name, one.device):
        assert text is None or (text.strip() == text and 0 < len(text) <= 200 and text.isprintable())


def test_wfdb_comments_are_read(write_record):
    path = write_record(comments=["Age: 74", "Sex: Female", "Dx: 426783006", "Recorder: R7"])
    header = path.with_suffix(".hea")
    first, rest = header.read_text().split("\n", 1)
    header.write_text(f"{first} 12:30:05 31/01/2024\n{rest}")
    found = read(path)
    assert found.acquisition == Acquisition(sex="female", age_years=74, time="2024-01-31T12:30:05", device="R7")
    assert found.labels == ("426783006",)


def test_a_wfdb_header_without_comments_says_nothing(write_record):
    assert not read(write_record(comments=["Age: NaN", "Sex: Unknown"])).acquisition


@pytest.mark.parametrize("known", [True, False])
def test_an_edf_header_is_read(tmp_path, known):
    signal = edfio.EdfSignal(np.sin(np.arange(3000) / 20), 300, label="ECG II", physical_dimension="mV")
    patient = edfio.Patient(code="P-1", sex="F", birthdate=datetime.date(1950, 1, 31), name="Doe_Jane")
    start = datetime.date(2024, 1, 31)
    about = {"patient": patient, "recording": edfio.Recording(startdate=start, equipment_code="H12")}
    edfio.Edf([signal], **(about if known else {}), starttime=datetime.time(12, 30)).write(tmp_path / "one.edf")
    expected = Acquisition("P-1", "Doe Jane", "F", "1950-01-31", None, "2024-01-31T12:30:00", "H12")
    assert read(tmp_path / "one.edf").acquisition == (expected if known else Acquisition())
