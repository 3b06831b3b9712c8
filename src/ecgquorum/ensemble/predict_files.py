"""Classify recordings in files, folders and archives."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.ensemble.prediction import Prediction
from ecgquorum.ensemble.result import Result, make_results
from ecgquorum.errors import EcgQuorumError
from ecgquorum.preprocessing.prepare import PreparedRecording, ReadOptions, read_recordings
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath
from ecgquorum.recordings.file_defaults import NO_DEFAULTS, FileDefaults
from ecgquorum.recordings.sandbox import LIMITS, SandboxLimits

GROUP, GROUP_SAMPLES = 32, 20_000_000
"""At most this many recordings, or samples, are classified at once."""

Outcome = PreparedRecording | ReadFailure


def predict_files(
    ensemble: Ensemble,
    paths: Iterable[str | Path | RecordingPath],
    lead: str | None = None,
    defaults: FileDefaults = NO_DEFAULTS,
    *,
    limits: SandboxLimits = LIMITS,
    sandbox: bool = True,
) -> Iterator[Result | ReadFailure]:
    """Classify every recording in files, folders and archives; one that cannot be read gives a `ReadFailure`.

    lead:     for a model of one lead, which lead of a recording to use
    defaults: rate, leads and units of files that hold samples only
    sandbox:  read in worker processes within `limits`; False: in this process, for trusted files
    """
    options = ReadOptions(ensemble.input, lead, defaults)
    for group in group_outcomes(read_recordings(paths, options, limits=limits, sandbox=sandbox)):
        yield from predict_outcomes(ensemble, group)[1]


def group_outcomes(outcomes: Iterable[Outcome]) -> Iterator[list[Outcome]]:
    """Groups of recordings to classify together: at most `GROUP` of them, fewer where they are long."""
    group: list[Outcome] = []
    n_samples = 0
    for one in outcomes:
        group.append(one)
        n_samples += one.signal.size if isinstance(one, PreparedRecording) else 0
        if len(group) == GROUP or n_samples >= GROUP_SAMPLES:
            yield group
            group, n_samples = [], 0
    if group:
        yield group


def predict_outcomes(ensemble: Ensemble, outcomes: Sequence[Outcome]) -> tuple[Prediction, list[Result | ReadFailure]]:
    """Classify prepared recordings; the prediction holds those with a `Result`, in order.

    One whose probabilities are not finite becomes a `ReadFailure` and does not affect the others.
    """
    prepared = [one for one in outcomes if isinstance(one, PreparedRecording)]
    try:
        prediction = _predict(ensemble, prepared)
    except EcgQuorumError:
        outcomes = [_check(ensemble, one) for one in outcomes]
        prepared = [one for one in outcomes if isinstance(one, PreparedRecording)]
        prediction = _predict(ensemble, prepared)
    model = str(ensemble.card.get("weights_sha256", ""))
    results = iter(make_results(prediction, prepared, ensemble.input, model))
    return prediction, [one if isinstance(one, ReadFailure) else next(results) for one in outcomes]


def _predict(ensemble: Ensemble, prepared: Sequence[PreparedRecording]) -> Prediction:
    return ensemble.predict_prepared([one.id for one in prepared], [one.signal for one in prepared])


def _check(ensemble: Ensemble, one: Outcome) -> Outcome:
    """The outcome, or a failure if the model cannot classify it."""
    if isinstance(one, PreparedRecording):
        try:
            _predict(ensemble, [one])
        except EcgQuorumError as error:
            return ReadFailure(str(one.path), str(error), one.sha256)
    return one
