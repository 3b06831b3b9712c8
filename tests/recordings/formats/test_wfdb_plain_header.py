import zipfile

import pytest
import wfdb
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum.recordings.formats.wfdb_plain_header import parse_plain_header

_FIELDS = [
    "n_sig",
    "fs",
    "sig_len",
    "base_date",
    "base_time",
    "file_name",
    "fmt",
    "samps_per_frame",
    "skew",
    "byte_offset",
    "adc_gain",
    "baseline",
    "units",
    "sig_name",
    "comments",
]
_PLAIN = "A00001 1 300 9000 05:05:15 1/05/2000\nA00001.mat 16+24 1000/mV 16 0 -127 0 0 ECG\n#Age: 63\n"

_numbers = st.integers(-32768, 32767)
_names = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,5}", fullmatch=True)
_signals = st.builds(
    "{}.{} 16{} {}{}/{} 16 {} {} {} 0 {}".format,
    st.just("rec"),
    st.sampled_from(["dat", "mat"]),
    st.sampled_from(["", "+24"]),
    st.sampled_from(["1000", "200", "204.8"]),
    st.sampled_from(["", "(0)", "(-12)", "(512)"]),
    st.sampled_from(["mV", "uV", "V", "mmHg"]),
    _numbers,
    _numbers,
    _numbers,
    _names,
)


def _compare(text, folder):
    """Assert that every field is what `wfdb` makes of the header; False if it is not of the common form."""
    found = parse_plain_header(text)
    if found is None:
        return False
    (folder / "record.hea").write_text(text)
    expected = wfdb.rdheader(str(folder / "record"))
    assert {name: getattr(found, name) for name in _FIELDS} == {name: getattr(expected, name) for name in _FIELDS}
    return True


@given(
    st.lists(_signals, min_size=1, max_size=4),
    st.sampled_from([100, 300, 500]),
    st.sampled_from(["", " 05:05:15 1/05/2000", " 23:59:59 31/12/1999"]),
    st.lists(st.sampled_from(["# Age: 63", "#Dx: 1,2", "#", "#  two # signs "]), max_size=3),
)
def test_fields_are_those_of_the_wfdb_package(tmp_path_factory, signals, rate, moment, comments):
    record = f"rec {len(signals)} {rate} 9000{moment}"
    plain = all("mmHg" not in line for line in signals)
    assert _compare("\n".join([record, *signals, *comments]) + "\n", tmp_path_factory.mktemp("header")) is plain


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("A00001 1", "A00001/2 1"),
        (" 300 ", " 300.5 "),
        (" 300 ", " 300/360 "),
        ("05:05:15", "05:05:15.25"),
        ("1/05/2000", "31/02/2000"),
        ("05:05:15 1/05/2000", "05:05:15"),
        (" 1 300", " 2 300"),
        ("16+24", "212"),
        ("16+24", "16x2"),
        ("16+24", "16:3"),
        ("1000/mV", "1000"),
        ("1000/mV", "0/mV"),
        (" 0 ECG", " 0"),
        (" 0 ECG", " 0 lead II"),
        ("A00001.mat", "../A00001.mat"),
        ("ECG\n", "ECG # a comment\n"),
        ("#Age", "Age"),
        (_PLAIN, ""),
    ],
)
def test_other_headers_are_left_to_the_wfdb_package(part, other):
    assert parse_plain_header(_PLAIN) is not None
    assert part in _PLAIN
    assert parse_plain_header(_PLAIN.replace(part, other)) is None


@pytest.mark.data
@pytest.mark.parametrize("name", ["physionet2017/training2017.zip", "cpsc2018/cpsc2018_100hz.zip"])
def test_headers_of_both_data_sets_have_the_common_form(real_data, tmp_path, name):
    with zipfile.ZipFile(real_data / name) as archive:
        headers = [one for one in archive.namelist() if one.endswith(".hea")][::97]
        assert all(_compare(archive.read(one).decode(), tmp_path) for one in headers)
