"""Corruptions and out-of-distribution sets by name."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from ecgquorum.corruptions.corruption import SEVERITIES, Corruption
from ecgquorum.corruptions.transform import SignalTransform
from ecgquorum.errors import CorruptionError
from ecgquorum.registry import Registry

CORRUPTIONS: Registry[type[Corruption]] = Registry(
    "corruption",
    {
        "baseline-wander": "ecgquorum.corruptions.baseline_wander:BaselineWander",
        "electrode-motion": "ecgquorum.corruptions.electrode_motion:ElectrodeMotion",
        "muscle": "ecgquorum.corruptions.muscle:Muscle",
        "mains": "ecgquorum.corruptions.mains:Mains",
        "motion-bursts": "ecgquorum.corruptions.motion_bursts:MotionBursts",
        "spikes": "ecgquorum.corruptions.spikes:Spikes",
        "pacing-spikes": "ecgquorum.corruptions.pacing_spikes:PacingSpikes",
        "lead-off": "ecgquorum.corruptions.lead_off:LeadOff",
        "intermittent-contact": "ecgquorum.corruptions.intermittent_contact:IntermittentContact",
        "missing-samples": "ecgquorum.corruptions.missing_samples:MissingSamples",
        "clipping": "ecgquorum.corruptions.clipping:Clipping",
        "quantisation": "ecgquorum.corruptions.quantisation:Quantisation",
        "amplitude-error": "ecgquorum.corruptions.amplitude_error:AmplitudeError",
        "rate-error": "ecgquorum.corruptions.rate_error:RateError",
        "time-stretch": "ecgquorum.corruptions.time_stretch:TimeStretch",
        "reversal-ra-la": "ecgquorum.corruptions.limb_reversal:RightLeftArmReversal",
        "reversal-ra-ll": "ecgquorum.corruptions.limb_reversal:RightArmLegReversal",
        "reversal-la-ll": "ecgquorum.corruptions.limb_reversal:LeftArmLegReversal",
        "precordial-swap": "ecgquorum.corruptions.precordial_swap:PrecordialSwap",
        "missing-leads": "ecgquorum.corruptions.missing_leads:MissingLeads",
        "baseline-wander-nstdb": "ecgquorum.corruptions.nstdb:RecordedBaselineWander",
        "electrode-motion-nstdb": "ecgquorum.corruptions.nstdb:RecordedElectrodeMotion",
        "muscle-nstdb": "ecgquorum.corruptions.nstdb:RecordedMuscle",
    },
)
"""Every corruption that a recipe or the command line can name; other packages add theirs as `ecgquorum.corruptions`."""

OOD_SETS: Registry[type[SignalTransform]] = Registry(
    "ood_set",
    {
        "noise": "ecgquorum.corruptions.ood.noise:Noise",
        "flat": "ecgquorum.corruptions.ood.flat:Flat",
        "shuffled-beats": "ecgquorum.corruptions.ood.shuffled_beats:ShuffledBeats",
        "time-reversed": "ecgquorum.corruptions.ood.time_reversed:TimeReversed",
        "eeg": "ecgquorum.corruptions.ood.eeg:Eeg",
        "respiration": "ecgquorum.corruptions.ood.respiration:Respiration",
        "ventricular-fibrillation": "ecgquorum.corruptions.ood.ventricular_fibrillation:VentricularFibrillation",
        "paced-rhythm": "ecgquorum.corruptions.ood.paced_rhythm:PacedRhythm",
    },
)
"""Sets of recordings that are no ECG of the model's classes; other packages add theirs as `ecgquorum.ood_sets`."""

ALL = "all"
RECORDED = ("baseline-wander-nstdb", "electrode-motion-nstdb", "muscle-nstdb")
"""Corruptions that need a download; "all" leaves them and those of other packages out, to mean the same everywhere."""


def list_corruptions(leads: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the corruptions that "all" stands for on recordings with these leads: built-in ones that ship."""
    return tuple(n for n in CORRUPTIONS.builtin if n not in RECORDED and build_corruption(n, 1).applies_to(leads))


def build_corruption(name: str, severity: int, options: Mapping[str, Any] | None = None) -> Corruption:
    """Build a corruption by its name; an unknown name or option is an error that lists what there is."""
    kind, options = CORRUPTIONS.get(name), options or {}
    if not (isinstance(kind, type) and issubclass(kind, Corruption)):
        raise CorruptionError(f"{name} is not a Corruption; see docs/reference/corruptions.md for how to write one")
    known = [field.name for field in dataclasses.fields(kind) if field.name != "severity"]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise CorruptionError(f"corruption {name}: unknown option {unknown[0]}; known: {', '.join(known) or 'none'}")
    return kind(severity=severity, **options)


def expand_severities(name: str, severities: Iterable[int]) -> list[Corruption]:
    """The corruption at each of these severities; one that is there or not only once, as severity 1."""
    once = build_corruption(name, 1)
    if len(type(once).levels) < len(SEVERITIES):
        return [once]
    return [build_corruption(name, severity) for severity in sorted(set(severities))]
