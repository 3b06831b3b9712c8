"""Tables as people and devices write them."""

import numpy as np
import pytest

from ecgquorum import read
from ecgquorum.errors import RecordingError
from ecgquorum.recordings import FileDefaults
from ecgquorum.recordings.formats import delimited_text

SAMPLES = np.round(np.sin(np.arange(900) / 9), 4)
UNITS = FileDefaults(units="mV")


def write_rows(path, rows, *above, delimiter=",", encoding="utf-8"):
    lines = [*above, *(delimiter.join(map(str, row)) for row in rows)]
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))
    return path


@pytest.mark.parametrize(
    ("title", "times"),
    [
        ("time", [f"{i / 300:.4f}" for i in range(900)]),
        ("time (s)", [f"{i / 300:.9f}" for i in range(900)]),
        ("time_seconds", [f"{i / 300:.16f}" for i in range(900)]),
        ("time_ms", [f"{i / 0.3:.0f}" for i in range(900)]),
        ("time_ms", [f"{i / 0.3:.3f}" for i in range(900)]),
        ("Time [ms]", [f"{i / 0.3:.2f}" for i in range(900)]),
        ("t", [f"{7.5 + i / 300:.3f}" for i in range(900)]),
        ("timestamp", [f"{1_700_000_000 + i / 300:.4f}" for i in range(900)]),
        ("Elapsed time (sec)", [f"{i / 300:.5f}" for i in range(900)]),
    ],
)
def test_times_may_be_rounded_and_in_ms(tmp_path, title, times):
    found = read(write_rows(tmp_path / "t.csv", zip(times, SAMPLES, strict=True), f"{title},II (mV)"))
    assert found.rate_hz == pytest.approx(300.0, rel=1e-12)
    np.testing.assert_allclose(found.signal[0], SAMPLES, atol=1e-6)


def test_a_dropped_sample_is_an_error_with_its_line(tmp_path):
    rows = [(f"{i / 300:.4f}", value) for i, value in enumerate(SAMPLES)]
    del rows[500]
    with pytest.raises(RecordingError, match="t.csv: line 502: expected evenly increasing times"):
        read(write_rows(tmp_path / "t.csv", rows, "time,II (mV)"))


def test_times_that_are_coarser_than_a_step_are_refused(tmp_path):
    rows = [(f"{i / 300:.2f}", value) for i, value in enumerate(SAMPLES)]
    with pytest.raises(RecordingError, match="evenly increasing times"):
        read(write_rows(tmp_path / "t.csv", rows, "time,II (mV)"))


@pytest.mark.parametrize("title", ["sample_number", "Sample #", "index", ""])
def test_numbers_of_samples_are_no_lead(tmp_path, title):
    path = write_rows(tmp_path / "t.csv", enumerate(SAMPLES), f"{title},II_mV")
    assert read(path, FileDefaults(rate_hz=300)).leads == ("II",)


def test_a_gap_in_the_numbers_of_samples_is_an_error_with_its_line(tmp_path):
    rows = list(enumerate(SAMPLES))
    del rows[10]
    with pytest.raises(RecordingError, match="line 12: expected sample numbers that increase by one, found 11 after 9"):
        read(write_rows(tmp_path / "t.csv", rows, "sample_number,II (mV)"), FileDefaults(rate_hz=300))


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_decimal_commas(tmp_path, delimiter):
    rows = [(f"{i / 300:.4f}".replace(".", ","), f"{value}".replace(".", ",")) for i, value in enumerate(SAMPLES)]
    found = read(write_rows(tmp_path / "t.csv", rows, delimiter.join(("time (s)", "II (mV)")), delimiter=delimiter))
    assert found.rate_hz == pytest.approx(300)
    np.testing.assert_allclose(found.signal[0], SAMPLES, atol=1e-6)


@pytest.mark.parametrize("quote", ["", '"'])
def test_one_column_of_decimal_commas(tmp_path, quote):
    rows = [(quote + f"{value:.4f}".replace(".", ",") + quote,) for value in SAMPLES]
    found = read(write_rows(tmp_path / "t.csv", rows, "II (mV)"), FileDefaults(rate_hz=300))
    np.testing.assert_allclose(found.signal, SAMPLES[None], atol=1e-6)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_a_mark_of_byte_order_and_other_encodings(tmp_path, encoding):
    path = write_rows(tmp_path / "t.csv", zip(SAMPLES * 1000, strict=True), "II (\u00b5V)", encoding=encoding)
    found = read(path, FileDefaults(rate_hz=300))
    assert found.leads == ("II",)
    np.testing.assert_allclose(found.signal[0], SAMPLES, atol=1e-6)


@pytest.mark.parametrize(
    "above",
    [
        ["Device;Holter X", "Sampling rate;300 Hz", "", "I;II"],
        ["# fs: 300", "# device: Holter X", "I;II"],
        ["Recorder = Holter X", "Abtastrate: 300,0 Hz", "'I';'II'"],
    ],
)
def test_lines_of_keys_and_values_above_the_table(tmp_path, above):
    path = write_rows(tmp_path / "t.csv", zip(SAMPLES, SAMPLES, strict=True), *above, delimiter=";")
    found = read(path, UNITS)
    assert (found.rate_hz, found.leads, found.acquisition.device) == (300.0, ("I", "II"), "Holter X")


def test_a_line_of_units_below_the_titles(tmp_path):
    rows = [(f"{i / 300:.3f}", value * 1000) for i, value in enumerate(SAMPLES)]
    found = read(write_rows(tmp_path / "t.csv", rows, "'Elapsed time','MLII'", "'seconds','uV'"))
    assert (found.rate_hz, found.leads) == (pytest.approx(300), ("MLII",))
    np.testing.assert_allclose(found.signal[0], SAMPLES, atol=1e-6)


APPLE_WATCH = (
    "Name,Jane Doe",
    'Date of Birth,"31 Jan 1950"',
    "Recorded Date,2020-03-04 05:06:07 +0100",
    "Classification,Sinus Rhythm",
    "Symptoms,",
    "Software Version,1.90",
    'Device,"Watch5,1"',
    "Sample Rate,513.625 hertz",
    "",
    "",
    "Lead,Lead I",
    "Unit,\u00b5V",
    "",
)


def test_the_export_of_apple_watch(tmp_path):
    found = read(write_rows(tmp_path / "ecg.csv", zip(np.round(SAMPLES * 1000, 3), strict=True), *APPLE_WATCH))
    assert (found.leads, found.rate_hz, found.unit) == (("I",), 513.625, "\u00b5V")
    np.testing.assert_allclose(found.signal[0], SAMPLES, atol=1e-6)
    assert (found.acquisition.name, found.acquisition.birth_date) == ("Jane Doe", "1950-01-31")
    assert (found.acquisition.time, found.acquisition.device) == ("2020-03-04T05:06:07+01:00", "Watch5,1")


def test_titles_as_numpy_writes_them(tmp_path):
    np.savetxt(tmp_path / "t.csv", np.stack([SAMPLES, SAMPLES], axis=1), delimiter=",", header="I (mV),II (mV)")
    assert read(tmp_path / "t.csv", FileDefaults(rate_hz=300)).leads == ("I", "II")


MICROVOLTS = np.round(SAMPLES * 1000 + np.sin(np.arange(900)), 3)


def with_commas(values, digits=3):
    """As devices write them: without zeros at the end, whole numbers without a comma."""
    return [(f"{value:.{digits}f}".rstrip("0").rstrip(".").replace(".", ","),) for value in values]


IN_OTHER_LANGUAGES = """\
Name|Geburtstag|Aufzeichnungsdatum|Gerät|Messrate|Ableitung|Einheit|31. Januar 1950
Nom|Date de naissance|Enregistré le|Appareil|Fréquence d\u2019échantillonnage|Dérivation|Unité|31 janv. 1950
Nombre|Fecha de nacimiento|Fecha de registro|Dispositivo|Frecuencia de muestreo|Derivación|Unidad|31 de enero de 1950
Nome|Data di nascita|Data di registrazione|Dispositivo|Frequenza di campionamento|Derivazione|Unità|31 gen 1950
Naam|Geboortedatum|Opnamedatum|Apparaat|Samplefrequentie|Afleiding|Eenheid|31.01.1950
Nome|Data de nascimento|Data de gravação|Dispositivo|Taxa de amostragem|Derivação|Unidade|1950-01-31
"""


@pytest.mark.parametrize("line", IN_OTHER_LANGUAGES.splitlines(), ids=["de", "fr", "es", "it", "nl", "pt"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_the_export_of_apple_watch_in_other_languages(tmp_path, line, quote):
    *keys, birth = line.split("|")
    lead = f"{keys[5]} I"
    values = (
        "Jane Doe",
        birth,
        "2020-03-04 05:06:07 +0100",
        '"Watch5,1"',
        f"{quote}513,625\u00a0hertz{quote}",
        lead,
        "\u00b5V",
    )
    above = [f"{key},{value}" for key, value in zip(keys, values, strict=True)]
    above[4:4] = ["X,Y", "Z,", "Software,1.90"]
    path = write_rows(tmp_path / "ecg.csv", with_commas(MICROVOLTS), *above[:-2], "", "", *above[-2:], "")
    found = read(path)
    assert (found.leads, found.rate_hz, found.unit) == (("I",), 513.625, "\u00b5V")
    np.testing.assert_allclose(found.signal[0], MICROVOLTS / 1000, atol=1e-6)
    facts = found.acquisition
    assert (facts.name, facts.birth_date, facts.device) == ("Jane Doe", "1950-01-31", "Watch5,1")
    assert facts.time == "2020-03-04T05:06:07+01:00"


@pytest.mark.parametrize("minus", ["-", "\u2212"])
@pytest.mark.parametrize("last", ["Einheit,\u00b5V", "Ableitung,Ableitung I", "Abtastrate,512 Hertz"])
def test_decimal_commas_between_commas_are_not_taken_for_two_leads(tmp_path, last, minus):
    rows = [(row.replace("-", minus),) for (row,) in with_commas(MICROVOLTS)]
    found = read(write_rows(tmp_path / "t.csv", rows, "Abtastrate,512 Hertz", "Einheit,\u00b5V", last, ""))
    np.testing.assert_allclose(found.signal, MICROVOLTS[None] / 1000, atol=1e-6)


def test_commas_that_may_be_either_are_refused_with_the_line(tmp_path):
    rows = [(f"{i % 90 + 10},{i % 80 + 11}",) for i in range(900)]
    with pytest.raises(RecordingError, match="t.csv: line 5: its comma may be a decimal mark or.*decimal points"):
        read(write_rows(tmp_path / "t.csv", rows, "Sample Rate,512 Hz", "Lead,Lead I", "Unit,\u00b5V", ""))
    found = read(write_rows(tmp_path / "t.csv", rows, "Sample Rate,512 Hz", "Unit,\u00b5V", "I,II"))
    assert found.leads == ("I", "II")


def test_thousands_are_refused_with_the_line(tmp_path):
    rows = [*with_commas(MICROVOLTS), ("1.234,5",)]
    with pytest.raises(RecordingError, match="line 903: expected numbers with one decimal mark, found a point and a"):
        read(write_rows(tmp_path / "t.csv", rows, "Messrate,512 Hertz", "Einheit,\u00b5V"))


@pytest.mark.parametrize(
    ("title", "values"),
    [
        ("RESP (Ohm)", SAMPLES),
        ("HR", [72] * 900),
        ("heart_rate (bpm)", [72] * 900),
        ("SpO2 [%]", [""] * 899 + [98]),
        ("ABP (mmHg)", SAMPLES),
        ("marker", [0, 1] * 450),
        ("Annotation", ["N", ""] * 450),
        ("label", [""] * 500 + ["AF, or not"] * 400),
        ("time of day", [f"12:00:{i / 300:06.3f}" for i in range(900)]),
        ("timestamp", [f"2020-01-01 12:00:{i / 300:06.3f}" for i in range(900)]),
        ("Flow (l/min)", SAMPLES),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_columns_that_are_no_ecg_are_left_out_with_a_note(tmp_path, title, values, delimiter):
    others = [f'"{value}"' if "," in str(value) else value for value in values]
    rows = zip(SAMPLES, others, SAMPLES / 2, strict=True)
    path = write_rows(tmp_path / "t.csv", rows, delimiter.join(("II (mV)", title, "C1 (mV)")), delimiter=delimiter)
    found = read(path, FileDefaults(rate_hz=300))
    assert (found.leads, found.notes) == (
        ("II", "V1"),
        (f"left out, no ECG leads: {title.split(' (')[0].split(' [')[0]}",),
    )
    np.testing.assert_allclose(found.signal, [SAMPLES, SAMPLES / 2], atol=1e-6)


@pytest.mark.parametrize("title", ["II", "II (mV)", "I,II", "II,label"])
def test_lines_about_the_patient_are_no_titles(tmp_path, title):
    above = ["Date,2020-01-01", "Age,50", "Weight,70", "Label,none", "HR,72", "Sample rate,300", "", title]
    rows = [(value, 0)[: title.count(",") + 1] for value in SAMPLES]
    found = read(write_rows(tmp_path / "t.csv", rows, *above), UNITS)
    assert (found.rate_hz, found.n_samples, found.acquisition.age_years) == (300.0, 900, 50.0)
    assert found.leads == tuple(one for one in ("I", "II") if one in title.replace(" (mV)", "").split(","))


def test_a_table_of_other_signals_only_is_refused(tmp_path):
    with pytest.raises(RecordingError, match="t.csv: expected a column of samples, found HR, SpO2"):
        read(write_rows(tmp_path / "t.csv", zip(SAMPLES, SAMPLES, strict=True), "HR,SpO2"), FileDefaults(rate_hz=300))


def test_text_in_a_lead_beside_other_columns_is_an_error_with_its_line(tmp_path):
    rows = [(value, "N") for value in SAMPLES]
    rows[700] = ("x", "N")
    with pytest.raises(RecordingError, match="line 702: expected 2 numbers on every line, found text"):
        read(write_rows(tmp_path / "t.csv", rows, "II (mV),label"), FileDefaults(rate_hz=300))
    rows[700] = (1.0,)
    with pytest.raises(RecordingError, match="line 702: expected 2 numbers on every line, found 1"):
        read(write_rows(tmp_path / "t.csv", rows, "II (mV),label"), FileDefaults(rate_hz=300))


def test_delimiters_at_the_end_of_lines(tmp_path):
    path = write_rows(tmp_path / "t.csv", ((value, "") for value in SAMPLES), "II (mV),")
    assert read(path, FileDefaults(rate_hz=300)).leads == ("II",)


def test_two_leads_called_ecg_can_be_named(tmp_path):
    path = write_rows(tmp_path / "t.csv", zip(SAMPLES, SAMPLES, strict=True), "ECG (mV),ECG (mV)")
    assert read(path, FileDefaults(rate_hz=300)).leads == ("ECG 1", "ECG 2")
    assert read(path, FileDefaults(rate_hz=300, leads=("I", "V5"))).leads == ("I", "V5")


def test_large_tables_are_read_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited_text, "_HEAD_CHARACTERS", 200)
    monkeypatch.setattr(delimited_text, "_CHUNK_CHARACTERS", 501)
    path = write_rows(tmp_path / "t.csv", ((f"{i / 300:.4f}", v) for i, v in enumerate(SAMPLES)), "time (s),II (mV)")
    np.testing.assert_allclose(read(path).signal[0], SAMPLES, atol=1e-6)
    lines = path.read_text().splitlines()
    lines[700] = "2.3300,x"
    path.write_text("\n".join(lines))
    with pytest.raises(RecordingError, match="line 701: expected 2 numbers on every line, found text"):
        read(path)


def test_tables_beyond_the_limits_are_refused_with_advice(tmp_path, monkeypatch):
    path = write_rows(tmp_path / "t.csv", zip(SAMPLES, strict=True), "II (mV)")
    monkeypatch.setattr(delimited_text, "_MOST_VALUES", 500)
    with pytest.raises(RecordingError, match="line 902: expected at most 500 numbers.*convert"):
        read(path, FileDefaults(rate_hz=300))
    monkeypatch.setattr(delimited_text, "_FILE_BYTES", 500)
    with pytest.raises(RecordingError, match="expected at most 500 bytes of text.*split it"):
        read(path, FileDefaults(rate_hz=300))


@pytest.mark.slow
def test_a_table_over_32_mib(tmp_path):
    n_samples = 3_000_000
    values = np.round(np.sin(np.arange(n_samples) / 9), 6)
    np.savetxt(tmp_path / "t.csv", values, fmt="%+.9f", header="II (mV)", comments="")
    assert (tmp_path / "t.csv").stat().st_size > 32 << 20
    np.testing.assert_allclose(read(tmp_path / "t.csv", FileDefaults(rate_hz=300)).signal[0], values, atol=1e-6)


@pytest.mark.parametrize(
    "rows",
    [
        (*APPLE_WATCH, "no samples"),
        ("Name;Jane Doe", "Date of Birth;31 Jan 1950"),
        (*APPLE_WATCH, *["12"] * 900, "Name,Jane Doe"),
    ],
)
def test_errors_do_not_name_the_patient(tmp_path, rows):
    with pytest.raises(RecordingError, match="line .*found text") as caught:
        read(write_rows(tmp_path / "ecg.csv", (), *rows))
    assert "Doe" not in str(caught.value) and "1950" not in str(caught.value)


@pytest.mark.parametrize(
    ("above", "rate_hz"),
    [
        (["Low-pass filter;150 Hz", "Sample rate;300"], 300),
        (["Tiefpass;150 Hz", "Notch;50 Hz", "Abtastrate;300 Hz"], 300),
        (["Notch;50 Hz"], None),
        (["A;150 Hz", "B;300 Hz"], None),
    ],
)
def test_the_frequency_of_a_filter_is_not_the_rate(tmp_path, above, rate_hz):
    path = write_rows(tmp_path / "t.csv", zip(SAMPLES, strict=True), *above, "II (mV)")
    if rate_hz is None:
        with pytest.raises(RecordingError, match="give it with --rate"):
            read(path)
    else:
        assert read(path).rate_hz == rate_hz


def test_some_columns_are_quoted(tmp_path):
    path = write_rows(tmp_path / "t.csv", ((f'"{i}"', i + 3) for i in range(900)), '"I (uV)","II (uV)"')
    np.testing.assert_allclose(read(path, FileDefaults(rate_hz=300)).signal[1], (np.arange(900) + 3) / 1000, rtol=1e-6)
