"""Build a cohort from each kind of source; duplicates and bad recordings are left out."""

import io
import json
import pickle
import shutil

import numpy as np
import pytest
from scipy.io import savemat

from ecgquorum import Cohort, build_cohort, open_source, simulate
from ecgquorum.cohorts import PARTS, SplitOptions
from ecgquorum.errors import CohortError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.recordings import STANDARD_LEADS


def signal(seed, n_leads=1, n_samples=1500):
    return np.random.default_rng(seed).normal(size=(n_leads, n_samples)).round(3)


@pytest.fixture
def physionet(write_record, tmp_path):
    """A small folder laid out like PhysioNet 2017; A00011 has the samples of A00003."""
    folder = tmp_path / "training2017"
    labels = {}
    for i in range(12):
        name = f"A{i:05d}"
        write_record(name, signal(3 if i == 11 else i), folder=folder)
        labels[name] = "NAO~"[i % 4]
    (folder / "REFERENCE-v3.csv").write_text("".join(f"{k},{v}\n" for k, v in labels.items()))
    return folder


def npy(array):
    target = io.BytesIO()
    np.save(target, array)
    return target.getvalue()


def built(source, out, *, sandbox=False, rate_hz=None, **split):
    return build_cohort(open_source(str(source)), out, rate_hz=rate_hz, split=SplitOptions(**split), sandbox=sandbox)


def test_physionet_from_a_folder_and_from_its_zip_are_the_same(physionet, zipped, tmp_path):
    one, report = built(physionet, tmp_path / "one")
    two, _ = built(zipped(physionet), tmp_path / "two", sandbox=True)
    assert one.data_hash == two.data_hash
    assert (len(one), one.rate_hz, one.leads) == (11, 300.0, ("ECG",))
    assert one.classes == ("N", "A", "O", "~")
    assert report.duplicates == [("A00011", "A00003")]
    assert json.loads((tmp_path / "one/cohort.json").read_text())["left_out"]["duplicates"] == [["A00011", "A00003"]]


def test_a_data_set_in_two_folders_is_the_same_as_in_one(physionet, tmp_path):
    whole, _ = built(physionet, tmp_path / "whole")
    lines = (physionet / "REFERENCE-v3.csv").read_text().splitlines(keepends=True)
    for name, part in (("first", lines[:5]), ("second", lines[5:])):
        shutil.copytree(physionet, tmp_path / name)
        (tmp_path / name / "REFERENCE-v3.csv").write_text("".join(part))
    source = open_source(str(tmp_path / "first"), str(tmp_path / "second"))
    assert list(open_source(str(tmp_path / "second"), str(tmp_path / "first")).records) == list(source.records)
    joined, report = build_cohort(source, tmp_path / "joined", sandbox=False)
    assert joined.data_hash == whole.data_hash
    assert report.duplicates == [("A00011", "A00003")]
    with pytest.raises(CohortError, match=r"two sources have a recording A00000 \(5 in all\)"):
        open_source(str(physionet), str(tmp_path / "first"))
    with pytest.raises(CohortError, match="parts of one data set: expected name PhysioNet"):
        open_source(str(physionet), "synthetic:physionet2017")


def test_validation_copies_do_not_hide_the_training_set(physionet, tmp_path):
    whole = tmp_path / "challenge"
    shutil.move(physionet, whole / "training2017")
    shutil.copytree(whole / "training2017", whole / "validation", ignore=shutil.ignore_patterns("*.csv"))
    cohort, report = built(whole, tmp_path / "out")
    assert len(cohort) == 11
    assert not report.unreadable


def test_signals_come_back_as_they_were_written(physionet, tmp_path):
    cohort, _ = built(physionet, tmp_path / "out")
    for index, row in enumerate(cohort.rows):
        assert row.label == "NAO~"[int(row.id[1:]) % 4]
        np.testing.assert_allclose(cohort.signal(index), signal(int(row.id[1:])), atol=2e-4)
    assert isinstance(cohort.signal(0).base.base, np.memmap) or isinstance(cohort.signal(0).base, np.memmap)


def test_old_labels_give_a_warning_and_newer_ones_beside_the_archive_are_used(physionet, zipped, tmp_path):
    newest = (physionet / "REFERENCE-v3.csv").read_text()
    (physionet / "REFERENCE-v3.csv").rename(physionet / "REFERENCE.csv")
    _, report = built(physionet, tmp_path / "old")
    assert "REFERENCE-v3.csv" in report.notices[0]
    archive = zipped(physionet)
    shutil.rmtree(physionet)
    (archive.parent / "REFERENCE-v3.csv").write_text(newest.replace("A00000,N", "A00000,A"))
    cohort, report = built(archive, tmp_path / "new")
    assert report.notices == []
    assert next(row.label for row in cohort.rows if row.id == "A00000") == "A"
    same, _ = built(archive.parent, tmp_path / "elsewhere")  # a folder with the archive and its labels, as fetched
    assert same.data_hash == cohort.data_hash


def test_a_label_file_with_a_wrong_line_is_refused_by_that_line(physionet, tmp_path):
    path = physionet / "REFERENCE-v3.csv"
    text = path.read_text()
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    cohort, _ = built(physionet, tmp_path / "bom")
    assert "A00000" in {row.id for row in cohort.rows}
    path.write_text(text.replace("A00004,N", "A00004,X"))
    with pytest.raises(
        CohortError, match=r"REFERENCE-v3.csv, line 5: expected an id and one of N, A, O, ~, found 'A00004,X'"
    ):
        built(physionet, tmp_path / "wrong")


def test_bad_records_are_reported_and_the_rest_is_built(physionet, tmp_path):
    (physionet / "A00001.dat").write_bytes(b"short")
    (physionet / "A00002.hea").unlink()
    cohort, report = built(physionet, tmp_path / "out")
    assert len(cohort) == 9
    assert [(u.source, "A00001.dat" in u.reason or "A00002" in u.reason) for u in report.unreadable] == [
        ("A00001", True),
        ("A00002", True),
    ]


def test_fixed_test_ids_from_a_list_or_a_permutation(physionet, tmp_path):
    (tmp_path / "ids.txt").write_text("A00011\nA00005\n\n")
    cohort, report = built(physionet, tmp_path / "listed", test_ids=tmp_path / "ids.txt")
    assert {cohort.rows[i].id for i in cohort.part("test")} == {"A00011", "A00005"}
    assert report.duplicates == [("A00003", "A00011")]  # of the two, the one that is not tested on goes
    permutation = np.random.default_rng(1).permutation(12)
    np.save(tmp_path / "p.npy", permutation)
    cohort, _ = built(physionet, tmp_path / "permuted", test_ids=tmp_path / "p.npy")
    assert {cohort.rows[i].id for i in cohort.part("test")} == {f"A{i:05d}" for i in permutation[10:]}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("ids.txt", b"A00001\nB1\n", "1 unknown ones: B1"),
        ("ids.txt", b"", "none"),
        ("ids.npy", b"junk", "ids.npy"),
        ("ids.npy", npy(np.array(3)), "permutation"),
    ],
)
def test_wrong_test_ids_are_refused(physionet, tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CohortError, match=reason):
        built(physionet, tmp_path / "out", test_ids=tmp_path / name)
    assert not (tmp_path / "out").exists()


def test_duplicates_with_different_labels_are_removed_except_test_recordings(write_record, tmp_path):
    folder = tmp_path / "mine"
    lines = ["id,label"]
    for i in range(12):
        write_record(f"r{i}", signal(0 if i in (4, 9) else i), folder=folder)
        lines.append(f"r{i},{'ab'[i % 2]}")
    (folder / "labels.csv").write_text("\n".join(lines))
    cohort, report = built(folder, tmp_path / "out")
    assert report.conflicts == [("r9", "r4")] or report.conflicts == [("r9", "r0")]
    ids = {row.id for row in cohort.rows}
    assert not ids & {"r4", "r9", "r0"}
    (tmp_path / "ids.txt").write_text("r9\n")
    cohort, report = built(folder, tmp_path / "fixed", test_ids=tmp_path / "ids.txt")
    assert [cohort.rows[i].id for i in cohort.part("test")] == ["r9"]
    assert {a for a, _ in report.duplicates} == {"r0", "r4"}
    for index, row in enumerate(cohort.rows):
        np.testing.assert_allclose(cohort.signal(index), signal(0 if row.id == "r9" else int(row.id[1:])), atol=2e-4)


def test_removing_recordings_of_test_patients_leaves_no_gap_in_the_signal_file(write_record, tmp_path):
    folder = tmp_path / "mine"
    lines = ["id,label,patient"]
    for i in range(12):
        write_record(f"r{i}", signal(i), folder=folder)
        lines.append(f"r{i},{'ab'[i % 2]},p{0 if i in (0, 5, 11) else i}")
    (folder / "labels.csv").write_text("\n".join(lines))
    (tmp_path / "ids.txt").write_text("r0\n")
    cohort, report = built(folder, tmp_path / "out", test_ids=tmp_path / "ids.txt")
    assert report.same_patient_as_test == ["r5", "r11"]
    cohort.verify()
    for index, row in enumerate(cohort.rows):
        np.testing.assert_allclose(cohort.signal(index), signal(int(row.id[1:])), atol=2e-4)


def test_records_with_the_same_name_get_different_ids(write_record, tmp_path):
    for i, group in enumerate(("g1", "g2")):
        write_record(
            "A0001",
            signal(i, 12),
            rate_hz=500,
            leads=STANDARD_LEADS,
            units=("mV",) * 12,
            comments=("Dx: 426783006",),
            folder=tmp_path / "cpsc" / group,
        )
    cohort, _ = built(tmp_path / "cpsc", tmp_path / "out")
    assert sorted(row.id for row in cohort.rows) == ["g1/A0001", "g2/A0001"]


def test_changed_samples_or_classes_are_detected(tiny_cohort, tmp_path):
    shutil.copytree(tiny_cohort.path, tmp_path / "c")
    Cohort(tmp_path / "c").verify()
    with (tmp_path / "c/signal.f32").open("r+b") as file:
        file.seek(4000)
        file.write(np.float32(np.nan).tobytes())
    with pytest.raises(CohortError, match="the samples of S.* have changed"):
        Cohort(tmp_path / "c").verify()
    card = json.loads((tmp_path / "c/cohort.json").read_text())
    card["classes"] = card["classes"][::-1]
    (tmp_path / "c/cohort.json").write_text(json.dumps(card))
    assert Cohort(tmp_path / "c").data_hash != tiny_cohort.data_hash


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rate_hz": 0.0}, "--rate"),
        ({"rate_hz": -5.0}, "--rate"),
        ({"rate_hz": float("nan")}, "--rate"),
        ({"leads": ["V9"]}, "V9"),
    ],
)
def test_impossible_options_are_refused(tmp_path, options, reason):
    with pytest.raises(CohortError, match=reason):
        build_cohort(open_source("synthetic:cpsc2018", records=4, seconds=2.0), tmp_path / "out", **options)
    assert not list(tmp_path.iterdir())


def test_a_class_without_training_recordings_gives_a_notice(tmp_path):
    _, report = build_cohort(open_source("synthetic:cpsc2018", records=5, seconds=2.0), tmp_path / "out")
    assert any("no recording to train on for the class" in notice for notice in report.notices)


def test_cpsc_in_the_layout_of_the_challenge_2020(write_record, tmp_path):
    folder = tmp_path / "cpsc_2018" / "g1"
    codes = {"A0001": "426783006", "A0002": "164889003,59118001", "A0003": "164931005", "A0004": "111"}
    for i, (name, dx) in enumerate(codes.items()):
        units = ("mV",) * 12
        write_record(
            name, signal(i, 12), rate_hz=500, leads=STANDARD_LEADS, units=units, comments=(f"Dx: {dx}",), folder=folder
        )
    cohort, report = built(tmp_path / "cpsc_2018", tmp_path / "out")
    assert sorted((row.id, row.label) for row in cohort.rows) == [("A0001", "Normal"), ("A0003", "STE")]
    assert (report.multi_label, report.unknown_label) == (["A0002"], ["A0004"])
    assert (cohort.rate_hz, cohort.leads, len(cohort.classes)) == (500.0, STANDARD_LEADS, 9)


def test_cpsc_in_its_original_layout(zipped, tmp_path):
    folder = tmp_path / "TrainingSet1"
    folder.mkdir()
    rows = ["Recording,First_label,Second_label,Third_label"]
    for i, labels in enumerate(["1,,", "2,5,", "9,,", "10,,"]):
        savemat(folder / f"A000{i}.mat", {"ECG": {"sex": "F", "age": 3, "data": signal(i, 12)}})
        rows.append(f"A000{i},{labels}")
    (folder / "REFERENCE.csv").write_text("\n".join(rows) + "\n")
    for place, out in ((folder, "folder"), (zipped(folder), "zip")):
        cohort, report = built(place, tmp_path / out)
        assert sorted((row.id, row.label) for row in cohort.rows) == [("A0000", "Normal"), ("A0002", "STE")]
        assert report.multi_label == ["A0001"]
        assert report.unknown_label == ["A0003"]


def test_patients_that_only_the_files_state_stay_in_one_part(write_record, tmp_path):
    folder = tmp_path / "in"
    rng = np.random.default_rng(0)
    for i in range(30):
        comments = [f"Patient ID: P-{i // 3}"]
        write_record(f"r{i}", np.cumsum(rng.normal(size=(1, 1500)), axis=1) / 20, folder=folder, comments=comments)
    (folder / "labels.csv").write_text("id,label\n" + "".join(f"r{i},{'AN'[i // 3 % 2]}\n" for i in range(30)))
    cohort, _ = built(folder, tmp_path / "cohort")
    assert {row.patient for row in cohort.rows} == {f"P-{i}" for i in range(10)}
    assert len({(row.patient, row.part) for row in cohort.rows}) == 10 and len({row.part for row in cohort.rows}) == 3


def test_patients_of_a_labelled_folder_stay_in_one_part(write_record, zipped, tmp_path):
    folder = tmp_path / "mine"
    lines = ["id,label,patient"]
    for i in range(40):
        write_record(f"r{i}", signal(i), rate_hz=250, leads=("II",), folder=folder / f"d{i % 2}")
        lines.append(f"d{i % 2}/r{i}{'.hea' if i % 3 else ''},{'healthy' if i % 2 else 'ill'},p{i // 4}")
    write_record("both", signal(99), rate_hz=250, leads=("II",), folder=folder)
    lines.append("both,ill|healthy,p9")
    (folder / "labels.csv").write_text("\n".join(lines))
    cohort, report = built(folder, tmp_path / "out")
    assert (cohort.classes, cohort.rate_hz, cohort.leads) == (("healthy", "ill"), 250.0, ("II",))
    assert report.multi_label == ["both"]
    assert len({(row.patient, row.part) for row in cohort.rows}) == 10
    resample, _ = built(zipped(folder), tmp_path / "zip", rate_hz=125.0)
    assert resample.rate_hz == 125.0
    assert {row.n_samples for row in resample.rows} == {750}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name,label\na,b\n", "columns id and label, found name, label"),
        ("id,label\nr0,\n", "line 2: expected an id and a label"),
        ("id,label\nr0,x\nr0,y\n", "line 3: r0 is listed twice"),
        (f"id,label\nr0,{'x' * 200_000}\n", "table with commas"),
        ("id,label\nnone,x\n", "none that can be used.*none"),
    ],
)
def test_a_wrong_labels_file_is_refused(write_record, tmp_path, text, reason):
    folder = tmp_path / "mine"
    write_record("r0", folder=folder)
    (folder / "labels.csv").write_text(text)
    with pytest.raises(CohortError, match=reason):
        built(folder, tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize("name", ["physionet2017", "cpsc2018"])
def test_simulated_cohorts(name, tmp_path):
    source = open_source(f"synthetic:{name}", records=60, seconds=3.0, seed=4)
    cohort, _ = build_cohort(source, tmp_path / "out")
    assert len(cohort) == 60
    assert set(np.unique(cohort.labels)) == set(range(len(cohort.classes)))
    assert [len(cohort.part(part)) for part in PARTS] == [48, 6, 6]
    again, _ = build_cohort(open_source(f"synthetic:{name}", records=60, seconds=3.0, seed=4), tmp_path / "again")
    assert again.data_hash == cohort.data_hash


def test_leads_can_be_chosen(tmp_path):
    cohort, _ = build_cohort(
        open_source("synthetic:cpsc2018", records=9, seconds=2.0), tmp_path / "out", leads=["v1", "Lead II"]
    )
    assert cohort.leads == ("V1", "II")
    assert cohort.signal(0).shape == (2, 1000)


def test_unknown_sources_are_refused_with_the_expected_files(write_record, tmp_path):
    write_record("r", folder=tmp_path / "bare")
    with pytest.raises(CohortError, match=r"labels.csv.*REFERENCE-v3.csv.*#Dx"):
        open_source(str(tmp_path / "bare"))
    with pytest.raises(CohortError, match="synthetic:cpsc2018, found synthetic:mars"):
        open_source("synthetic:mars")


def test_an_existing_folder_is_not_overwritten(tiny_cohort):
    with pytest.raises(CohortError, match="remove it or choose another"):
        build_cohort(open_source("synthetic:physionet2017", records=4), tiny_cohort.path)


@pytest.mark.parametrize(
    "shares", [{"tune_share": float("nan")}, {"test_share": -0.1}, {"tune_share": 0.6, "test_share": 0.5}]
)
def test_impossible_shares_are_refused(shares):
    with pytest.raises(CohortError, match="shares"):
        SplitOptions(**shares)


def test_a_batch_is_scaled_padded_and_masked(tiny_cohort):
    spec = InputSpec(tiny_cohort.leads, tiny_cohort.rate_hz, "microvolt", 6.0)
    batch = tiny_cohort.batch([3, 1], spec)
    assert batch.signal.shape == (2, 1, 1800)
    assert batch.label.tolist() == tiny_cohort.labels[[3, 1]].tolist()
    assert batch.valid.sum(dim=2).tolist() == [[1500], [1500]]
    assert not batch.signal[~batch.valid].any()
    np.testing.assert_array_equal(batch.signal[1][batch.valid[1]].numpy(), tiny_cohort.signal(1)[0] * np.float32(1000))
    whole = tiny_cohort.recording(1)
    np.testing.assert_array_equal(spec.fit(whole)[0], batch.signal[1][batch.valid[1]].numpy())
    assert simulate("N", seed=0).recording.signal.shape == (12, 9000)


@pytest.mark.parametrize(
    ("file", "damage", "reason"),
    [
        ("signal.f32", lambda b: b[:-4], "signal.f32: expected .* bytes"),
        ("cohort.json", lambda b: b[:50], "cohort.json: expected JSON"),
        ("cohort.json", lambda b: b.replace(b'"format": 1', b'"format": 7'), "format 1"),
        ("cohort.json", lambda b: b.replace(b'"classes"', b'"klasses"'), "classes"),
        ("records.csv", lambda b: b.replace(b"id,label", b"id,lable"), "columns"),
        ("records.csv", lambda b: b.replace(b",1500,", b",abc,", 1), "records.csv"),
        ("records.csv", lambda b: b.replace(b",N,", b",Q,", 1), "found 'Q'"),
    ],
)
def test_a_damaged_cohort_is_refused(tiny_cohort, tmp_path, file, damage, reason):
    shutil.copytree(tiny_cohort.path, tmp_path / "c")
    path = tmp_path / "c" / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CohortError, match=reason):
        Cohort(tmp_path / "c")


def test_a_folder_that_is_not_a_cohort_is_refused_with_advice(tmp_path):
    with pytest.raises(CohortError, match="ecgquorum cohort build"):
        Cohort(tmp_path)


@pytest.mark.data
@pytest.mark.slow
def test_the_real_physionet_archive(real_data, tmp_path):
    folder = real_data / "physionet2017"
    cohort, report = built(folder / "training2017.zip", tmp_path / "out", test_ids=folder / "paper_validation_ids.txt")
    assert [len(cohort.part(part)) for part in PARTS] == [6215, 690, 853]
    assert len(report.duplicates) == 2 and not report.unreadable


@pytest.mark.data
def test_the_real_cpsc_sample(real_data, tmp_path):
    cohort, report = built(real_data / "cpsc2018/cpsc2018_native_sample.zip", tmp_path / "out")
    assert (len(cohort), cohort.rate_hz, cohort.leads) == (54, 500.0, STANDARD_LEADS)
    assert np.bincount(cohort.labels).tolist() == [6] * 9
    assert not report.unreadable


def test_wrong_units_give_a_notice(write_record, tmp_path):
    folder = tmp_path / "some"
    for number in range(6):
        true = simulate("N", seed=number, leads=("ECG",), seconds=6).recording
        write_record(f"r{number}", true.signal * (1000 if number == 2 else 1), folder=folder)
    (folder / "labels.csv").write_text("id,label\n" + "".join(f"r{i},{'NA'[i % 2]}\n" for i in range(6)))
    cohort, report = built(folder, tmp_path / "cohort", test_share=0.2, tune_share=0.2)
    (notice,) = [one for one in report.notices if "another unit" in one]
    assert notice.startswith("1 recordings are read in another unit than stated; first r2: uV where it says mV")
    assert max(np.abs(cohort.signal(i)).max() for i in range(len(cohort))) < 10


def test_an_unpickled_cohort_is_the_same_or_refused(tiny_cohort, tmp_path):
    shutil.copytree(tiny_cohort.path, tmp_path / "c")
    sent = pickle.dumps(Cohort(tmp_path / "c"))
    assert len(sent) < 1000
    assert pickle.loads(sent).data_hash == tiny_cohort.data_hash
    records = tmp_path / "c" / "records.csv"
    records.write_text(records.read_text().replace(",train,", ",tune,", 1))
    with pytest.raises(CohortError, match="expected the cohort that the work is about, found another"):
        pickle.loads(sent)
