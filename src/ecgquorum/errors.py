"""Errors, one class per kind; each message says what failed, where, and what to do, in one line."""


class EcgQuorumError(Exception):
    """Base class of every error that ecgquorum raises on purpose."""


class QualityWarning(UserWarning):
    """A recording that was handed over in memory is classified, but a person should look at it."""


class RecordingError(EcgQuorumError):
    """A file cannot be read as an ECG recording."""


class OutputError(EcgQuorumError):
    """A folder cannot be written to because of what is there."""


class StorageError(EcgQuorumError):
    """A file in a bucket or on a server cannot be read or written."""


class FittingError(EcgQuorumError):
    """A recording does not fit the input that a model expects."""


class CohortError(EcgQuorumError):
    """A cohort cannot be built, opened or used."""


class FetchError(EcgQuorumError):
    """A data set cannot be downloaded."""


class RecipeError(EcgQuorumError):
    """A recipe is wrong."""


class RegistryError(EcgQuorumError):
    """No member, attack, strategy or reader has this name, or it cannot be imported."""


class MemberError(EcgQuorumError):
    """A network cannot serve as a member, or lacks what a strategy reads from it."""


class AttackError(EcgQuorumError):
    """An attack cannot be run on this classifier, or in this norm."""


class CorruptionError(EcgQuorumError):
    """A corruption does not apply to these leads, or lacks the noise that it needs."""


class TrainingError(EcgQuorumError):
    """A training run cannot start or continue."""


class RankLostError(TrainingError):
    """A process that trains together with this one has stopped."""


class DivergedError(TrainingError):
    """The loss became NaN or infinite."""


class BundleError(EcgQuorumError):
    """A model on disk is missing, damaged or does not match its card."""


class ExportError(EcgQuorumError):
    """An ensemble cannot be exported."""


class DrawingError(EcgQuorumError):
    """A recording cannot be drawn with these options."""


class ScorecardError(EcgQuorumError):
    """A scorecard is missing, damaged, or not comparable with the others."""


class PolicyError(EcgQuorumError):
    """A triage policy cannot be fitted, or is unknown to this version."""


class ClusterError(EcgQuorumError):
    """Tasks cannot be sent to other processes or machines, or were lost there."""


class ConfigError(EcgQuorumError):
    """The file with options is wrong."""


class TuningError(EcgQuorumError):
    """A search for a better recipe cannot start or continue."""


class TriageError(EcgQuorumError):
    """Triage cannot start or resume."""


class DeskError(EcgQuorumError):
    """The review desk cannot be opened, or rejects a request."""
