"""What lines of keys and values above a table state, in the languages in which devices write them."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from ecgquorum.recordings.acquisition import Acquisition, parse_years
from ecgquorum.recordings.leads import STANDARD_LEADS, normalise_lead
from ecgquorum.recordings.units import millivolts_in

_KEY_AND_VALUE = re.compile(r"^(?P<key>[^,;:=\t]{1,60})\s*[,;:=\t]\s*(?P<value>.{1,200})$")
_RATE = re.compile(r"^(?P<number>\d+(?:[.,]\d+)?)\s*(?P<unit>hz|hertz|khz|sps|samples/s(?:econd)?)?$", re.IGNORECASE)
_RATE_KEY = re.compile(
    r"\b(?:sampl\w*|fs|sf|acquisition)\b.*\b(?:rate|freq\w*|fs|hz)\b|^(?:fs|sf|sfreq|rate|rate_hz|frequency)$"
)
_FILTER_KEY = re.compile(r"filt|notch|pass|cut|band|mains|line|netz|heart|puls|herz|card|hart")

# English, German, French, Spanish, Italian, Dutch, Portuguese; without accents
_LEAD_KEYS = ("lead", "ableitung", "derivation", "derivacion", "derivazione", "afleiding", "derivacao")
_KEYS = {
    "patient_id": ("patient id", "patientid", "patient_id", "subject id", "id"),
    "name": ("name", "patient name", "nom", "nombre", "nome", "naam"),
    "sex": ("sex", "gender", "geschlecht", "sexe", "sexo", "sesso", "geslacht"),
    "birth_date": (
        *("date of birth", "birth date", "dob", "geburtstag", "geburtsdatum", "date de naissance"),
        *("fecha de nacimiento", "data di nascita", "geboortedatum", "data de nascimento"),
    ),
    "age_years": ("age", "alter", "edad", "eta", "leeftijd", "idade"),
    "time": (
        *("recorded date", "recording date", "start time", "date", "aufzeichnungsdatum", "aufgezeichnet am"),
        *("date d'enregistrement", "enregistre le", "fecha de registro", "fecha de grabacion", "registrado el"),
        *("data di registrazione", "data registrazione", "registrato il", "opnamedatum", "opgenomen op"),
        *("data de registro", "data de gravacao", "data da gravacao", "registado em", "gravado em"),
    ),
    "device": ("device", "recorder", "gerat", "appareil", "dispositivo", "apparaat"),
}
_MONTHS = (
    *(("jan", "ene", "gen"), ("feb", "fev"), ("mar", "mrz", "mrt", "maa"), ("apr", "abr", "avr")),
    *(("may", "mai", "mei", "mag"), ("jun", "juin", "giu"), ("jul", "juil", "lug"), ("aug", "aou", "ago")),
    *(("sep", "set"), ("oct", "okt", "ott", "out"), ("nov",), ("dec", "dez", "dic")),
)
_WRITTEN_DATE = re.compile(r"(\d{1,2})[ .-]+(?:de )?([a-z]{3,})[ .-]+(?:de )?(\d{4})")
_DOTTED_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")


@dataclass(frozen=True)
class TableFacts:
    """Keys, in lower case without accents, and values of the lines above a table."""

    values: dict[str, str] = field(default_factory=dict)

    @property
    def rate_hz(self) -> float | None:
        """The rate that a line states: `Sample Rate,512 hertz`.

        In any language if one line says hertz; filters have frequencies too, and several do not tell which is the rate.
        """
        named, others = [], set()
        for key, value in self.values.items():
            if match := _RATE.match(value.strip()):
                unit = (match["unit"] or "").lower()
                number = float(match["number"].replace(",", ".")) * (1000 if unit == "khz" else 1)
                if _RATE_KEY.search(key):
                    named.append(number)
                elif unit and not _FILTER_KEY.search(key):
                    others.add(number)
        return named[0] if named else others.pop() if len(others) == 1 else None

    @property
    def unit(self) -> str | None:
        """The unit of voltage that a line states."""
        return next((value for value in self.values.values() if millivolts_in(value) is not None), None)

    @property
    def lead(self) -> str | None:
        """The lead that a line states."""
        names = map(normalise_lead, self.values.values())
        return next((name for name in names if name in STANDARD_LEADS), None)

    @property
    def acquisition(self) -> Acquisition:
        """Patient, time and device, where lines state them."""
        found = {
            fact: next((self.values[key] for key in keys if key in self.values), None) for fact, keys in _KEYS.items()
        }
        return Acquisition(
            patient_id=found["patient_id"],
            name=found["name"],
            sex=found["sex"],
            birth_date=_iso_date(found["birth_date"] or ""),
            age_years=parse_years(found["age_years"]),
            time=_iso_time(found["time"] or ""),
            device=found["device"],
        )


def parse_facts(lines: Sequence[str]) -> TableFacts:
    """Keys and values of lines such as `Sample Rate,300 Hz`, `# fs: 300` or `Device = X`."""
    facts: dict[str, str] = {}
    for line in lines:
        text = line.strip().lstrip("#%/ ").replace('"', "")
        match = _KEY_AND_VALUE.match(text)
        if match and match["value"].strip():
            facts.setdefault(_fold(match["key"]), match["value"].strip())
    return TableFacts(facts)


def states_fact(cells: Sequence[str]) -> bool:
    """Whether the cells of a line are a key and a value, not titles: `Lead,Lead I`, `Einheit,uV`, `Rate,512 Hz`."""
    if len(cells) != 2:
        return False
    rate = _RATE.match(cells[1])
    return _fold(cells[0]) in _LEAD_KEYS or millivolts_in(cells[1]) is not None or rate is not None


def _fold(text: str) -> str:
    """In lower case without accents, with plain blanks and apostrophes."""
    plain = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    return " ".join("".join(one for one in plain if not unicodedata.combining(one)).lower().split())


def _iso_date(text: str) -> str | None:
    """`27 Sep 1999`, `27. September 1999`, `27.09.1999` or an ISO date as ISO 8601."""
    folded = _fold(text)
    if match := _DOTTED_DATE.fullmatch(folded):
        return f"{match[3]}-{int(match[2]):02d}-{int(match[1]):02d}"
    match = _WRITTEN_DATE.fullmatch(folded)
    months = [number for number, names in enumerate(_MONTHS, start=1) if match and match[2].startswith(names)]
    return f"{match[3]}-{months[0]:02d}-{int(match[1]):02d}" if match and months else text or None


def _iso_time(text: str) -> str | None:
    """`2021-12-17 12:58:58 +0800` as ISO 8601."""
    return re.sub(r"\s+(?=[+-]\d\d:?\d\d$)", "", text) or None
