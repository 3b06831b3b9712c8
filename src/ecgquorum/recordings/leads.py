"""Names of ECG leads."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

STANDARD_LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")

UNNAMED_LEAD = "ECG"
"""Name of the only lead of a device that does not say which one it is."""

_MOST_CHARACTERS = 40

_BY_FOLDED_NAME = {name.lower(): name for name in (*STANDARD_LEADS, UNNAMED_LEAD)}
_LEAD = "lead|ableitung|d[e\u00e9]rivation|derivaci[o\u00f3]n|derivazione|afleiding|deriva[c\u00e7][a\u00e3]o"
_PREFIX = re.compile(
    rf"^(?:mdc_ecg_lead_|ecg[ _-]+lead[ _-]+|ecg[ _-]+|lead[ _-]*|(?:{_LEAD})[\s_-]+)(?=.)", re.IGNORECASE
)

_COUNTED = re.compile(r"^(?:ecg|ekg|channel|chan|ch|signal|sig|lead|unspecified)?[ _-]*\d*$", re.IGNORECASE)

_LIMB_LEADS, _CHEST_LEADS = frozenset(STANDARD_LEADS[:6]), frozenset(STANDARD_LEADS[6:])
_IEC_LIMBS, _IEC_CHEST = frozenset("RLF"), frozenset(f"C{number}" for number in range(1, 7))
_SLEEP_EEG = frozenset(("C3", "C4"))

_ELECTRODE = r"(?:FP|AF|F|FT|FC|T|TP|C|CP|P|PO|O|A|M|E)(?:Z|\d\d?)(?=[^A-Z0-9]|$)"  # of the 10-20 system, and eyes
_EEG = re.compile(rf"^\s*(?:EEG|EOG|EMG|MEG|CHIN|LOC|ROC|{_ELECTRODE})(?![A-Z])", re.IGNORECASE)
_OTHER = re.compile(
    r"^\s*(?:"
    r"(?:EEG|EOG|ERG|EMG|EP|MEG|MCG|GSR|EDA|PPG|RESP|PLETH|S[AP]O2|(?:ET)?CO2|(?:AIR)?FLOW|TEMP|STIM|STATUS|TRIG|ACC)"
    r"|(?:N?I?ABP|NBP|ART|PAP|CVP|ICP|BP|PULSE|THOR|ABDO|SNORE|NASAL|CHIN|LOC|ROC|EVENT|MARKER|POSITION|SOUND|LIGHT)S?"
    r"|(?:HR|HEART[ _-]?RATE|BPM|RR|PR|ANN|ANNOTATION|LABEL|CLASS|BEAT|COMMENT|NOTE|FLAG|SYNC|BATTERY|DATE|CLOCK)S?"
    r"|(?:TIME[ _-]?OF[ _-]?DAY|DATE[ _-]?TIME|LOCAL[ _-]?TIME|WALL[ _-]?(?:TIME|CLOCK)|LEADS?[ _-]?(?:OFF|STATUS))"
    rf"|{_ELECTRODE}"
    r")(?![A-Z])(?!.*\b(?:ECG|EKG)\d*\b)|^\s*(?:RESPIRATION|PLETHYSMO|TEMPERATURE|THORA|TRIGGER|ACCEL|PRESSURE)",
    re.IGNORECASE,
)


def normalise_lead(name: str) -> str:
    """The standard spelling of a lead's name (`avr`, `Lead AVR`, `MDC_ECG_LEAD_aVR` -> `aVR`; `ECG C1` -> `V1`).

    Other names (`MLII`, `X`) are returned as they are, without surrounding blanks.
    """
    stripped = name.strip()
    folded = stripped.lower()
    if folded not in _BY_FOLDED_NAME:
        folded, n_prefixes = _PREFIX.subn("", folded)
        folded = folded.strip()
        if n_prefixes and folded.upper() in _IEC_CHEST:
            folded = f"v{folded[1]}"
    return _BY_FOLDED_NAME.get(folded, stripped)


def normalise_leads(names: Iterable[str]) -> tuple[str, ...]:
    """The standard spelling of all names of one recording: `C1` to `C6`, the chest leads by IEC, are `V1` to `V6`.

    Electrodes of an EEG have these names too. They are chest leads beside a limb lead (`I` to `aVF`, or `R`, `L` and
    `F`), or if there are all six, provided that no other name is that of an EEG signal or of a chest lead. `C3` and
    `C4` alone, which sleep recordings have beside an ECG, stay what they are.
    """
    spelled = [normalise_lead(name) for name in names]
    chest = [name for name in spelled if name.upper() in _IEC_CHEST]
    others = {name for name in spelled if name not in chest}
    is_ecg = len(chest) == len(_IEC_CHEST) or others & _LIMB_LEADS or {one.upper() for one in others} >= _IEC_LIMBS
    ambiguous = len({name.upper() for name in chest}) < len(chest) or {name.upper() for name in chest} <= _SLEEP_EEG
    if not is_ecg or ambiguous or any(name in _CHEST_LEADS or _EEG.match(name) for name in others):
        return tuple(spelled)
    return tuple(f"V{name[1]}" if name in chest else name for name in spelled)


def is_not_a_lead(name: str) -> bool:
    """Whether a name does not say which lead it is: empty, `ECG`, or a number (`ch2`, `Channel 3`)."""
    return _COUNTED.match(name.strip()) is not None


def is_other_signal(name: str) -> bool:
    """Whether a name is that of a signal which is no ECG: `RESP`, `EEG Fpz-Cz`, `C3`, `ABP`."""
    return _OTHER.match(name) is not None


def note_left_out(names: Iterable[str]) -> tuple[str, ...]:
    """A note that names signals which were left out because they are no ECG leads; none if there are none."""
    shown = [" ".join(name.split())[:_MOST_CHARACTERS] or "a signal without a name" for name in names]
    return (f"left out, no ECG leads: {', '.join(dict.fromkeys(shown))}",) if shown else ()


def leads_of_one_rate(names: Sequence[str], rates_hz: Sequence[float]) -> tuple[list[int], tuple[str, ...]]:
    """Places of the leads at the rate that most have, of equally many the fastest; a note names those left out."""
    counts = Counter(rates_hz)
    chosen = max(counts, key=lambda rate_hz: (counts[rate_hz], rate_hz))
    kept = [i for i, rate_hz in enumerate(rates_hz) if rate_hz == chosen]
    others = [f"{names[i]} ({rates_hz[i]:g} Hz)" for i in range(len(names)) if i not in kept]
    return kept, ((f"left out, at another rate: {', '.join(others)}",) if others else ())
