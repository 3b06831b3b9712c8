"""Where leads are drawn, in millimetres."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecgquorum import Recording
from ecgquorum.errors import DrawingError
from ecgquorum.recordings import STANDARD_LEADS
from ecgquorum.report.ecg_paper import (
    FOOTER_MM,
    GAINS_MM_PER_MV,
    GRID_MM,
    LAYOUTS,
    LEAD_IN_MM,
    MAP_MM,
    SPEEDS_MM_PER_S,
    Scale,
    arrange_leads,
    lay_out,
)

A4_MM, A3_MM = 210, 420


def recording(leads, seconds, rate_hz=100.0):
    return Recording("r", np.zeros((len(leads), max(1, round(seconds * rate_hz)))), rate_hz, leads)


def leads_in(sheet):
    return [[strip.lead for strip in row.strips] for row in sheet.rows]


def test_three_by_four_and_a_rhythm_strip():
    sheet = lay_out(*arrange_leads(recording(STANDARD_LEADS, 10)))
    assert leads_in(sheet) == [
        ["I", "aVR", "V1", "V4"],
        ["II", "aVL", "V2", "V5"],
        ["III", "aVF", "V3", "V6"],
        ["II"],
    ]
    assert [strip.x_mm - LEAD_IN_MM for strip in sheet.rows[0].strips] == [0, 62.5, 125, 187.5]
    assert [strip.start_s for strip in sheet.rows[0].strips] == [0, 2.5, 5, 7.5]
    assert sheet.rows[3].strips[0].seconds == 10


def test_six_by_two_and_twelve_by_one():
    two = lay_out(*arrange_leads(recording(STANDARD_LEADS[::-1], 10), "6x2"))
    assert leads_in(two) == [[STANDARD_LEADS[i], STANDARD_LEADS[i + 6]] for i in range(6)]
    one = lay_out(*arrange_leads(recording(STANDARD_LEADS, 60), "12x1"))
    assert leads_in(one) == [[lead] for lead in STANDARD_LEADS]
    assert one.shown_s == (0, 10)
    assert max(two.height_mm, one.height_mm) <= A4_MM


def test_one_lead_continues_row_by_row():
    sheet = lay_out(*arrange_leads(recording(("ECG",), 30)))
    assert sheet.layout == "rows" and leads_in(sheet) == [["ECG"]] * 3
    assert [row.strips[0].start_s for row in sheet.rows] == [0, 10, 20]
    assert sheet.height_mm <= A4_MM
    later = lay_out(*arrange_leads(recording(("ECG",), 30)), start_s=12.0)
    assert later.shown_s == (12, 30) and later.rows[1].strips[0].seconds == 8
    slow = lay_out(*arrange_leads(recording(("ECG",), 30)), Scale(12.5, 10.0))
    assert [row.strips[0].seconds for row in slow.rows] == [20, 10]


def test_limb_leads_are_derived_and_what_cannot_be_is_named():
    eight = recording(("I", "II", *STANDARD_LEADS[6:]), 10)
    drawn, layout = arrange_leads(eight)
    assert drawn.leads == STANDARD_LEADS and layout == "3x4+1"
    assert arrange_leads(recording(("I", "V1"), 10))[1] == "rows"
    with pytest.raises(
        DrawingError, match=r"expected lead II, .*found only I, V1; draw the leads there are with --layout"
    ):
        arrange_leads(recording(("I", "V1"), 10), "6x2")
    with pytest.raises(DrawingError, match="there is no layout '4x3'; choose one of 3x4\\+1, 6x2, 12x1, rows"):
        arrange_leads(eight, "4x3")
    with pytest.raises(DrawingError, match="cannot start at 10 s; the recording lasts 10 s"):
        lay_out(drawn, layout, start_s=10.0)
    with pytest.raises(DrawingError, match="40 leads do not fit on a page .*smaller --gain"):
        lay_out(recording(tuple(f"X{i}" for i in range(40)), 10), "rows")


def test_maps_have_room_beneath_the_leads_that_have_them():
    drawn, layout = arrange_leads(recording(STANDARD_LEADS, 10))
    sheet = lay_out(drawn, layout, mapped=("II",), n_maps=3)
    assert [row.maps_mm is not None for row in sheet.rows] == [False, True, False, True]
    below = sheet.rows[2]
    assert sheet.rows[1].maps_mm - 3 * MAP_MM >= below.top_mm
    long = lay_out(*arrange_leads(recording(STANDARD_LEADS, 10), "12x1"), mapped=STANDARD_LEADS, n_maps=3)
    assert A4_MM < long.height_mm <= A3_MM


@given(
    n_leads=st.integers(1, 12),
    seconds=st.floats(0.02, 400),
    speed=st.sampled_from(SPEEDS_MM_PER_S),
    gain=st.sampled_from(GAINS_MM_PER_MV),
    layout=st.sampled_from((None, *LAYOUTS)),
    n_maps=st.integers(0, 5),
)
def test_every_layout_fits_the_sheet(n_leads, seconds, speed, gain, layout, n_maps):
    leads = STANDARD_LEADS[:n_leads] if n_leads == 12 else tuple(f"X{i}" for i in range(n_leads))
    if n_leads < 12 and layout not in (None, "rows"):
        return
    drawn, chosen = arrange_leads(recording(leads, seconds), layout)
    try:
        sheet = lay_out(drawn, chosen, Scale(speed, gain), mapped=leads, n_maps=n_maps)
    except DrawingError:
        assert n_leads * (1.4 * gain + n_maps * MAP_MM) > A3_MM - 60
        return
    assert sheet.height_mm <= A3_MM
    assert sheet.height_mm == sheet.header_mm + sheet.grid_height_mm + FOOTER_MM
    assert sheet.shown_s[1] <= drawn.seconds + 1e-9
    lowest = sheet.grid_height_mm
    for row in sheet.rows:
        assert lowest >= row.top_mm > row.baseline_mm
        lowest = row.top_mm - 1 if row.maps_mm is None else row.maps_mm - n_maps * MAP_MM
        assert lowest >= 0 and row.baseline_mm > (row.maps_mm or 0)
        for strip in row.strips:
            assert strip.x_mm >= LEAD_IN_MM and strip.x_mm + strip.seconds * speed <= GRID_MM
            assert strip.seconds > 0
