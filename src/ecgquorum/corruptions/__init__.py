"""Corruptions: disturbances of recordings with severities from 1 to 5, and recordings that are no ECG at all."""

from ecgquorum.corruptions.additive_noise import SNR_DB, AdditiveNoise, scale_to_snr
from ecgquorum.corruptions.amplitude_error import AmplitudeError
from ecgquorum.corruptions.baseline_wander import BaselineWander
from ecgquorum.corruptions.clipping import Clipping
from ecgquorum.corruptions.corruption import SEVERITIES, Corruption
from ecgquorum.corruptions.electrode_motion import ElectrodeMotion
from ecgquorum.corruptions.intermittent_contact import IntermittentContact
from ecgquorum.corruptions.lead_off import LeadOff
from ecgquorum.corruptions.limb_reversal import LeftArmLegReversal, RightArmLegReversal, RightLeftArmReversal
from ecgquorum.corruptions.mains import Mains
from ecgquorum.corruptions.missing_leads import MissingLeads
from ecgquorum.corruptions.missing_samples import MissingSamples
from ecgquorum.corruptions.motion_bursts import MotionBursts
from ecgquorum.corruptions.muscle import Muscle
from ecgquorum.corruptions.nstdb import RecordedBaselineWander, RecordedElectrodeMotion, RecordedMuscle
from ecgquorum.corruptions.pacing_spikes import PacingSpikes
from ecgquorum.corruptions.precordial_swap import PrecordialSwap
from ecgquorum.corruptions.quantisation import Quantisation
from ecgquorum.corruptions.rate_error import RateError
from ecgquorum.corruptions.registry import (
    ALL,
    CORRUPTIONS,
    OOD_SETS,
    build_corruption,
    expand_severities,
    list_corruptions,
)
from ecgquorum.corruptions.spikes import Spikes
from ecgquorum.corruptions.time_stretch import TimeStretch
from ecgquorum.corruptions.transform import SignalTransform

__all__ = [
    "ALL",
    "CORRUPTIONS",
    "OOD_SETS",
    "SEVERITIES",
    "SNR_DB",
    "AdditiveNoise",
    "AmplitudeError",
    "BaselineWander",
    "Clipping",
    "Corruption",
    "ElectrodeMotion",
    "IntermittentContact",
    "LeadOff",
    "LeftArmLegReversal",
    "Mains",
    "MissingLeads",
    "MissingSamples",
    "MotionBursts",
    "Muscle",
    "PacingSpikes",
    "PrecordialSwap",
    "Quantisation",
    "RateError",
    "RecordedBaselineWander",
    "RecordedElectrodeMotion",
    "RecordedMuscle",
    "RightArmLegReversal",
    "RightLeftArmReversal",
    "SignalTransform",
    "Spikes",
    "TimeStretch",
    "build_corruption",
    "expand_severities",
    "list_corruptions",
    "scale_to_snr",
]
