"""What can go wrong, as one tree.

EcgQuorumError
├── RecordingError   a file cannot be read as an ECG recording
├── FittingError     a recording does not fit the input that a model expects
├── CohortError      a cohort cannot be built, opened or used
├── FetchError       a data set cannot be downloaded
├── RecipeError      a recipe is wrong
├── RegistryError    no member, attack, strategy or reader has this name, or it cannot be imported
├── MemberError      a network cannot serve as a member, or lacks what a strategy reads from it
├── AttackError      an attack cannot be run on this classifier, or in this norm
├── TrainingError    a training run cannot start, or cannot go on
│   ├── DivergedError    its loss is no number any more
│   └── RankLostError    a process that trains together with this one has stopped
├── BundleError      a model on disk is missing, damaged or does not match its card
├── ExportError      an ensemble cannot be written in another form
├── DrawingError     a recording cannot be drawn as it was asked for
├── ScorecardError   a scorecard is missing or damaged, or does not go with the others
├── PolicyError      a policy of triage cannot be fitted, or is not one that this version knows
├── ClusterError     work cannot be given to other processes or machines, or was lost there
├── TuningError      a search for a better recipe cannot begin, or cannot go on
├── TriageError      triage cannot begin, or cannot go on where it stopped
└── DeskError        the review desk cannot be opened, or refuses what it is asked

Every message says what was expected, what was found and what to do. The command line prints that line alone.
"""


class EcgQuorumError(Exception):
    """The root: catch this to catch everything that ecgquorum raises on purpose."""


class RecordingError(EcgQuorumError):
    """A file cannot be read as an ECG recording."""


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


class TrainingError(EcgQuorumError):
    """A training run cannot start, or cannot go on."""


class RankLostError(TrainingError):
    """A process that trains together with this one has stopped."""


class DivergedError(TrainingError):
    """A training's loss is no number any more."""


class BundleError(EcgQuorumError):
    """A model on disk is missing, damaged or does not match its card."""


class ExportError(EcgQuorumError):
    """An ensemble cannot be written in another form."""


class DrawingError(EcgQuorumError):
    """A recording cannot be drawn as it was asked for."""


class ScorecardError(EcgQuorumError):
    """A scorecard is missing or damaged, or does not go with the others."""


class PolicyError(EcgQuorumError):
    """A policy of triage cannot be fitted, or is not one that this version knows."""


class ClusterError(EcgQuorumError):
    """Work cannot be given to other processes or machines, or was lost there."""


class TuningError(EcgQuorumError):
    """A search for a better recipe cannot begin, or cannot go on."""


class TriageError(EcgQuorumError):
    """Triage cannot begin, or cannot go on where it stopped."""


class DeskError(EcgQuorumError):
    """The review desk cannot be opened, or refuses what it is asked."""
