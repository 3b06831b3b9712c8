"""Classify recordings in files, folders and archives."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ecgquorum.ensemble.ensemble import Ensemble
from ecgquorum.ensemble.prediction import Prediction
from ecgquorum.ensemble.result import Result, make_results
from ecgquorum.errors import EcgQuorumError
from ecgquorum.preprocessing.input_spec import WHOLE_WINDOWS, Windowing
from ecgquorum.preprocessing.prepare import ANY_RECORDING, PreparedRecording, ReadOptions, read_recordings
from ecgquorum.recordings.discovery import ReadFailure, RecordingPath
from ecgquorum.recordings.sandbox import LIMITS, SandboxLimits

GROUP, GROUP_SAMPLES = 128, 20_000_000
"""At most this many recordings, or samples, are classified at once, those of similar length in one batch."""

Outcome = PreparedRecording | ReadFailure


def predict_files(
    ensemble: Ensemble,
    paths: Iterable[str | Path | RecordingPath],
    options: ReadOptions = ANY_RECORDING,
    *,
    windowing: Windowing = WHOLE_WINDOWS,
    limits: SandboxLimits = LIMITS,
    sandbox: bool = True,
) -> Iterator[Result | ReadFailure]:
    """Classify every recording in files, folders and archives; one that cannot be read gives a `ReadFailure`.

    options:   how to read; `spec` is that of the ensemble in any case
    windowing: how long recordings are split
    sandbox:   read in worker processes within `limits`; False: in this process, for trusted files
    """
    options = replace(options, spec=ensemble.input)
    for group in group_outcomes(read_recordings(paths, options, limits=limits, sandbox=sandbox)):
        yield from predict_outcomes(ensemble, group, windowing)[1]


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


def predict_outcomes(
    ensemble: Ensemble, outcomes: Sequence[Outcome], windowing: Windowing = WHOLE_WINDOWS
) -> tuple[Prediction, list[Result | ReadFailure]]:
    """Classify prepared recordings; the prediction holds those with a `Result`, in order.

    One whose probabilities are not finite becomes a `ReadFailure` and does not affect the others.
    """
    prepared = [one for one in outcomes if isinstance(one, PreparedRecording)]
    windowing.check(ensemble.input)
    try:
        prediction, windows = _predict(ensemble, prepared, windowing)
    except EcgQuorumError:
        outcomes = [_check(ensemble, one, windowing) for one in outcomes]
        prepared = [one for one in outcomes if isinstance(one, PreparedRecording)]
        prediction, windows = _predict(ensemble, prepared, windowing)
    results = iter(make_results(prediction, windows, prepared, ensemble, windowing))
    return prediction, [one if isinstance(one, ReadFailure) else next(results) for one in outcomes]


def _predict(
    ensemble: Ensemble, prepared: Sequence[PreparedRecording], windowing: Windowing
) -> tuple[Prediction, Prediction]:
    return ensemble.predict_windows([one.id for one in prepared], [one.signal for one in prepared], windowing)


def _check(ensemble: Ensemble, one: Outcome, windowing: Windowing) -> Outcome:
    """The outcome, or a failure if the model cannot classify it."""
    if isinstance(one, PreparedRecording):
        try:
            _predict(ensemble, [one], windowing)
        except EcgQuorumError as error:
            return ReadFailure(str(one.path), str(error), one.sha256)
    return one
