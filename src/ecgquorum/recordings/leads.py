"""Names of ECG leads."""

import re
from collections import Counter
from collections.abc import Sequence

STANDARD_LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")

UNNAMED_LEAD = "ECG"
"""Name of the only lead of a device that does not say which one it is."""

_BY_FOLDED_NAME = {name.lower(): name for name in (*STANDARD_LEADS, UNNAMED_LEAD)}
_PREFIX = re.compile(r"^(?:mdc_ecg_lead_|ecg[ _-]+lead[ _-]+|ecg[ _-]+|lead[ _-]*)(?=.)", re.IGNORECASE)

_COUNTED = re.compile(r"^(?:ecg|ekg|channel|chan|ch|signal|sig|lead|unspecified)?[ _-]*\d*$", re.IGNORECASE)

_OTHER = re.compile(
    r"^\s*(?:"
    r"(?:EEG|EOG|ERG|EMG|EP|MEG|MCG|GSR|EDA|PPG|RESP|PLETH|S[AP]O2|(?:ET)?CO2|(?:AIR)?FLOW|TEMP|STIM|STATUS|TRIG|ACC)"
    r"|(?:N?I?ABP|NBP|ART|PAP|CVP|ICP|BP|PULSE|THOR|ABDO|SNORE|NASAL|CHIN|LOC|ROC|EVENT|MARKER|POSITION|SOUND|LIGHT)"
    r"|(?:FP|AF|F|FT|FC|T|TP|C|CP|P|PO|O|A|M|E)(?:Z|\d\d?)(?=[^A-Z0-9]|$)"  # electrodes of the 10-20 system, eyes
    r")(?![A-Z])(?!.*\b(?:ECG|EKG)\d*\b)|^\s*(?:RESPIRATION|PLETHYSMO|TEMPERATURE|THORA|TRIGGER|ACCEL|PRESSURE)",
    re.IGNORECASE,
)


def normalise_lead(name: str) -> str:
    """The standard spelling of a lead's name (`avr`, `Lead AVR`, `MDC_ECG_LEAD_aVR` -> `aVR`).

    Other names (`MLII`, `X`) are returned as they are, without surrounding blanks.
    """
    stripped = name.strip()
    folded = stripped.lower()
    if folded not in _BY_FOLDED_NAME:
        folded = _PREFIX.sub("", folded).strip()
    return _BY_FOLDED_NAME.get(folded, stripped)


def is_not_a_lead(name: str) -> bool:
    """Whether a name does not say which lead it is: empty, `ECG`, or a number (`ch2`, `Channel 3`)."""
    return _COUNTED.match(name.strip()) is not None


def is_other_signal(name: str) -> bool:
    """Whether a name is that of a signal which is no ECG: `RESP`, `EEG Fpz-Cz`, `C3`, `ABP`."""
    return _OTHER.match(name) is not None


def leads_of_one_rate(names: Sequence[str], rates_hz: Sequence[float]) -> tuple[list[int], tuple[str, ...]]:
    """Places of the leads at the rate that most have, of equally many the fastest; a note names those left out."""
    counts = Counter(rates_hz)
    chosen = max(counts, key=lambda rate_hz: (counts[rate_hz], rate_hz))
    kept = [i for i, rate_hz in enumerate(rates_hz) if rate_hz == chosen]
    others = [f"{names[i]} ({rates_hz[i]:g} Hz)" for i in range(len(names)) if i not in kept]
    return kept, ((f"left out, at another rate: {', '.join(others)}",) if others else ())
