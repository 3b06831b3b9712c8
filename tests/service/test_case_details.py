"""Below the paper: measurements, earlier recordings of the patient, windows; blind where it must be."""

import re

import httpx
import pytest

from ecgquorum import simulate
from ecgquorum.preprocessing.measurements import measure_recording
from ecgquorum.recordings import write
from ecgquorum.service.store.recordings import find_recording

from .conftest import listening, needs_chromium, playwright, put

expect = playwright.expect if playwright else None
SERIES = (
    ("old", 17, "01/02/2020"),
    ("middle", 17, "01/02/2021"),
    ("new", 17, "01/02/2022"),
    ("other", 18, "01/02/2021"),
)


def write_dated(folder, name, patient, day, seed):
    """A WFDB recording of a patient at noon of a day."""
    write(simulate("N", seed=seed, seconds=10, leads=("ECG",)).recording, folder / f"{name}.hea")
    header = folder / f"{name}.hea"
    first, *rest = header.read_text().splitlines()
    header.write_text("\n".join([f"{' '.join(first.split()[:4])} 12:00:00 {day}", *rest, f"#Patient: {patient}", ""]))
    return [header, folder / f"{name}.dat"]


@pytest.fixture
def served(make_desk, classify, tmp_path):
    """A desk where all is open: its client, the desk, and ids by name; a long recording, and series of patients."""
    desk = make_desk(audit_share=1.0)
    write(simulate("N", seed=5, seconds=300, leads=("ECG",)).recording, tmp_path / "long.npz")
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        ids = {"long": put(client, tmp_path / "long.npz").json()["id"]}
        for seed, (name, patient, day) in enumerate(SERIES):
            for path in write_dated(tmp_path, name, patient, day, seed):
                ids[name] = put(client, path).json()["id"]
        classify(desk)
        yield client, desk, ids


def judge(client, case, label, times=1, **more):
    client.put(f"/api/recordings/{case}/claim").raise_for_status()
    for _ in range(times):
        client.post(f"/api/recordings/{case}/verdicts", json={"label": label, **more}).raise_for_status()


def test_earlier_recordings_are_those_of_the_patient_and_show_readers_answers_only(served):
    client, desk, ids = served
    listed = client.get(f"/api/recordings/{ids['new']}/earlier").json()
    assert [one["id"] for one in listed] == [ids["middle"], ids["old"]], "the latest first, of this patient"
    assert [one["at"][:10] for one in listed] == ["2021-02-01", "2020-02-01"]
    assert [one["label"] for one in listed] == [None, None]
    assert client.get(f"/api/recordings/{ids['old']}/earlier").json() == []
    assert client.get(f"/api/recordings/{ids['long']}/earlier").json() == [], "the file states no patient"
    judge(client, ids["middle"], "A")
    assert client.get(f"/api/recordings/{ids['new']}/earlier").json()[0]["label"] is None, "not before it is closed"
    judge(client, ids["middle"], "A", comment="as before")
    (middle, _) = client.get(f"/api/recordings/{ids['new']}/earlier").json()
    assert (middle["label"], middle["comments"], middle["state"] != "open") == ("A", ["as before"], True)
    with desk.store.read_session() as session:
        row = find_recording(session, ids["new"])
        assert row.patient and row.patient != "17" and len(row.patient) == 64


@pytest.mark.parametrize("nobody", [None, "", "0000", "X", "Anonymous", " unknown "])
def test_recordings_of_nobody_in_particular_are_not_one_patient(desk, nobody):
    assert desk.pseudonym(nobody) == ""
    assert desk.pseudonym("17") == desk.pseudonym(" 17 ") != desk.pseudonym("18")


def test_windows_are_hidden_until_the_first_verdict(served):
    client, _, ids = served
    hidden = client.get(f"/api/recordings/{ids['long']}/windows")
    assert hidden.status_code == 409 and "first verdict" in hidden.json()["detail"]
    judge(client, ids["long"], "N")
    shown = client.get(f"/api/recordings/{ids['long']}/windows").json()
    assert [one["start_s"] for one in shown["windows"]] == [6.0 * place for place in range(50)]
    assert shown["worst"] is not None


def test_measurements_are_those_of_the_stored_samples_and_need_no_verdict(served):
    client, desk, ids = served
    found = client.get(f"/api/recordings/{ids['new']}/measurements").json()
    with desk.store.read_session() as session:
        recording = desk.recording(find_recording(session, ids["new"]))
    expected = measure_recording(recording)
    assert 40 < found["heart_rate_bpm"] < 150
    assert (found["heart_rate_bpm"], found["n_beats"]) == (expected.heart_rate_bpm, expected.n_beats)
    if found["qt_ms"]:
        rr_s = 60 / found["heart_rate_bpm"]
        assert found["qtc_bazett_ms"] == pytest.approx(found["qt_ms"] / rr_s**0.5, abs=0.1)


def test_identities_are_shown_only_by_a_desk_that_keeps_them(make_desk, classify, tmp_path):
    for identify, expected in ((False, []), (True, ["id 17", "2020-02-01T12:00:00"])):
        desk = make_desk(data=tmp_path / f"desk-{identify}", identify=identify)
        with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
            for path in write_dated(tmp_path, f"one-{identify}", 17, "01/02/2020", 3):
                case = put(client, path).json()["id"]
            classify(desk)
            assert client.get(f"/api/recordings/{case}").json()["acquisition"] == expected


@needs_chromium
def test_the_case_page_shows_measurements_and_the_earlier_recording_at_the_same_scale(served, page):
    client, _, ids = served
    judge(client, ids["middle"], "O", times=2, comment="new since last year")
    page.goto(f"{client.base_url}/cases/{ids['new']}")
    expect(page.locator("[data-key=heart_rate_bpm]")).to_have_text(re.compile(r"^\d+ /min$"))
    listed = page.locator(".earlier li")
    expect(listed.nth(0)).to_contain_text("middle.hea")
    expect(listed.nth(0)).to_contain_text("2021-02-01 12:00: O")
    expect(listed.nth(1)).to_contain_text("not closed yet")
    expect(page.locator("#comments")).to_contain_text("new since last year")
    expect(page.locator("#earlier .ecg-stage")).to_be_visible()
    for label, words in (
        ("Larger", r"25 mm/s\s+10 mm/mV\s+shown at 125 %"),
        ("Gain 20 mm/mV", r"25 mm/s\s+20 mm/mV\s+shown at 125 %"),
    ):
        page.locator(f"#viewer [aria-label='{label}']").click()
        for one in ("#viewer", "#earlier"):
            expect(page.locator(f"{one} .ecg-ink")).to_have_attribute("aria-label", re.compile(words))
    expect(page.locator("#earlier .ecg-toolbar")).to_be_hidden()
    page.click("[data-earlier] >> nth=1")
    expect(listed.nth(1)).to_have_class("is-shown")
    expect(page.locator("#earlier .ecg-stage")).to_be_visible()


@needs_chromium
def test_a_click_on_the_windows_goes_there_and_nothing_is_shown_before_the_reveal(served, page):
    client, _, ids = served
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{client.base_url}/cases/{ids['long']}")
    expect(page.locator("[data-label=N]")).to_be_enabled()
    expect(page.locator("#windows")).to_contain_text("after your first verdict")
    assert page.locator("svg.windows").count() == 0 and not any("/windows" in url for url in asked if "/api/" in url)
    paper = page.locator("#viewer .ecg-stage").bounding_box()
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    chart = page.locator("svg.windows")
    expect(chart).to_be_visible()
    assert page.locator("#viewer .ecg-stage").bounding_box() == paper, "the paper does not jump"
    page.evaluate(
        "document.getElementById('viewer').addEventListener('ecg:moved', (e) => (document.body.dataset.at = e.detail))"
    )
    chart.click(position={"x": 0.51 * chart.bounding_box()["width"], "y": 5})
    expect(page.locator("body")).to_have_attribute("data-at", "150")
    expect(page.locator(".window-words")).to_contain_text("2:30 to 2:36")
    page.click(".window-tools button >> nth=0")
    worst = client.get(f"/api/recordings/{ids['long']}/windows").json()
    start = worst["windows"][worst["worst"]]["start_s"]
    expect(page.locator(".window-words")).to_contain_text(f"{int(start) // 60}:{int(start) % 60:02d} to")
