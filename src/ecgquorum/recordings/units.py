"""Units of voltage."""

_MILLIVOLTS = {
    "mv": 1.0,
    "millivolt": 1.0,
    "millivolts": 1.0,
    "v": 1e3,
    "volt": 1e3,
    "volts": 1e3,
    "uv": 1e-3,
    "microvolt": 1e-3,
    "microvolts": 1e-3,
    "nv": 1e-6,
    "nanovolt": 1e-6,
    "nanovolts": 1e-6,
}


def millivolts_in(unit: str) -> float | None:
    """How many millivolts one of this unit is; None when it is no unit of voltage."""
    folded = unit.strip().lower().replace("\u00b5", "u").replace("\u03bc", "u")
    return _MILLIVOLTS.get(folded)
