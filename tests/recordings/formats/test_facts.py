"""What each format states about patient, time and device."""

import datetime

import edfio
import numpy as np
import pydicom
import pytest

from ecgquorum import Recording, read, simulate
from ecgquorum.recordings import STANDARD_LEADS, Acquisition

from ...contracts.device_formats import (
    FACTS,
    write_atc,
    write_ishne,
    write_kardia,
    write_mfer,
    write_mortara,
    write_scp,
)
from ...contracts.formats import write_aecg, write_dicom, write_muse, write_sierra


@pytest.fixture
def recording():
    made = simulate("N", seed=1, seconds=2.0, rate_hz=250.0).recording
    return Recording("made", np.round(made.signal, 3), 250.0, STANDARD_LEADS)


def facts(found):
    """All but age and device."""
    one = found.acquisition
    return one.patient_id, one.name, one.sex, one.birth_date, one.time


EXPECTED = (FACTS.patient_id, FACTS.name, FACTS.sex, FACTS.birth_date, FACTS.time)


@pytest.mark.parametrize("write_it", [write_scp, write_ishne, write_mfer, write_mortara])
def test_binary_formats_and_mortara(recording, tmp_path, write_it):
    found = read(write_it(recording, tmp_path))
    assert facts(found) == EXPECTED
    assert found.acquisition.age_years == 70
    assert found.acquisition.device == ("Mortara ELI 250" if write_it is write_mortara else None)


def test_kardia_and_atc_state_no_person(recording, tmp_path):
    found = read(write_kardia(recording, tmp_path))
    assert found.acquisition == Acquisition("p7", time="2020-03-04T05:06:07+00:00", device="AliveCor")
    found = read(write_atc(recording, tmp_path))
    assert found.acquisition == Acquisition(time="2020-03-04T05:06:07+00:00", device="AliveCor KardiaMobile 6L")


def test_dicom(recording, tmp_path):
    path = write_dicom(recording, tmp_path)
    data = pydicom.dcmread(path)
    data.PatientName, data.PatientSex, data.PatientBirthDate, data.PatientAge = "Doe^Jane", "F", "19500131", "070Y"
    data.AcquisitionDateTime, data.Manufacturer, data.ManufacturerModelName = "20200304050607.25+0100", "GE", "MAC"
    data.save_as(path)
    found = read(path)
    assert facts(found) == (*EXPECTED[:4], "2020-03-04T05:06:07+01:00")
    assert (found.acquisition.age_years, found.acquisition.device) == (70, "GE MAC")


def test_aecg(recording, tmp_path):
    path = write_aecg(recording, tmp_path)
    subject = (
        '<effectiveTime><low value="20200304050607.123"/></effectiveTime><componentOf><timepointEvent><componentOf>'
        '<subjectAssignment><subject><trialSubject><id extension="p7"/><subjectDemographicPerson>'
        "<name><family>Doe</family><given>Jane</given></name>"
        '<administrativeGenderCode code="F"/><birthTime value="19500131"/></subjectDemographicPerson></trialSubject>'
        "</subject></subjectAssignment></componentOf></timepointEvent></componentOf>"
    )
    author = (
        "<author><seriesAuthor><manufacturedSeriesDevice><manufacturerModelName>X1</manufacturerModelName>"
        "</manufacturedSeriesDevice><manufacturerOrganization><name>Maker</name></manufacturerOrganization>"
        "</seriesAuthor></author>"
    )
    text = path.read_text().replace('instance">', f'instance">{subject}', 1).replace("<series>", f"<series>{author}")
    path.write_text(text)
    found = read(path)
    assert facts(found) == EXPECTED
    assert found.acquisition.device == "Maker X1"


def test_muse(recording, tmp_path):
    path = write_muse(recording, tmp_path)
    text = path.read_text().replace(
        "</PatientDemographics>",
        "<PatientAge>70</PatientAge><AgeUnits>YEARS</AgeUnits><DateofBirth>01-31-1950</DateofBirth>"
        "<Gender>FEMALE</Gender><PatientLastName>Doe</PatientLastName><PatientFirstName>Jane</PatientFirstName>"
        "</PatientDemographics><TestDemographics><AcquisitionDevice>MAC55</AcquisitionDevice>"
        "<AcquisitionTime>05:06:07</AcquisitionTime><AcquisitionDate>03-04-2020</AcquisitionDate></TestDemographics>",
    )
    path.write_text(text)
    found = read(path)
    assert facts(found) == EXPECTED
    assert (found.acquisition.age_years, found.acquisition.device) == (70, "GE MAC55")


def test_sierra(recording, tmp_path):
    path = write_sierra(recording, tmp_path)
    text = path.read_text().replace(
        "<dataacquisition>",
        "<patient><generalpatientdata><patientid>p7</patientid><name><lastname>Doe</lastname>"
        "<firstname>Jane</firstname></name><age><dateofbirth>1950-01-31</dateofbirth></age><sex>Female</sex>"
        '</generalpatientdata></patient><dataacquisition date="2020-03-04" time="05:06:07">'
        '<machine detaildescription="Philips:860315">PageWriter Touch</machine>',
    )
    path.write_text(text)
    found = read(path)
    assert facts(found) == EXPECTED
    assert found.acquisition.device == "PageWriter Touch Philips:860315"


def test_edf(tmp_path):
    edfio.Edf(
        [edfio.EdfSignal(np.sin(np.arange(2500) / 9), 250, label="II", physical_dimension="mV")],
        patient=edfio.Patient(code="p7", sex="F", birthdate=datetime.date(1950, 1, 31), name="Doe_Jane"),
        recording=edfio.Recording(startdate=datetime.date(2020, 3, 4), equipment_code="Holter"),
        starttime=datetime.time(5, 6, 7),
    ).write(tmp_path / "a.edf")
    found = read(tmp_path / "a.edf")
    assert facts(found) == EXPECTED
    assert found.acquisition.device == "Holter"
