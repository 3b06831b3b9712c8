# The public names, in the order that data flows. `__init__.py` reads this list; nothing else repeats it.
from . import (
    attacks as attacks,
    corruptions as corruptions,
    losses as losses,
    members as members,
    metrics as metrics,
    recordings as recordings,
    strategies as strategies,
)
from .errors import EcgQuorumError as EcgQuorumError
from .recordings import (
    FileDefaults as FileDefaults,
    ReadFailure as ReadFailure,
    Recording as Recording,
    read as read,
    reader as reader,
    write as write,
)
from .simulation import Simulation as Simulation, simulate as simulate
from .preprocessing import (
    InputSpec as InputSpec,
    PreparedRecording as PreparedRecording,
    ReadOptions as ReadOptions,
    read_recordings as read_recordings,
)
from .cohorts import (
    Batch as Batch,
    Cohort as Cohort,
    LabelMap as LabelMap,
    MappedCohort as MappedCohort,
    SplitOptions as SplitOptions,
    build_cohort as build_cohort,
    fetch as fetch,
    load_label_map as load_label_map,
    open_source as open_source,
)
from .members import BandFilter as BandFilter, build_member as build_member
from .ensemble import (
    Attribution as Attribution,
    Ensemble as Ensemble,
    Prediction as Prediction,
    Result as Result,
    attribute as attribute,
    export_onnx as export_onnx,
    load_ensemble as load_ensemble,
    predict_files as predict_files,
    read_card as read_card,
    save_bundle as save_bundle,
)
from .recipes import Recipe as Recipe, Study as Study, load_recipe as load_recipe, load_study as load_study
from .training import (
    RiskCondition as RiskCondition,
    RiskOptions as RiskOptions,
    TrainingOptions as TrainingOptions,
    fit_risk as fit_risk,
    train as train,
    train_ensemble as train_ensemble,
)
from .evaluation import (
    AttackCondition as AttackCondition,
    EvaluationOptions as EvaluationOptions,
    Scorecard as Scorecard,
    evaluate as evaluate,
    name_ensembles as name_ensembles,
)
from .report import model_card as model_card, write_report as write_report, write_results as write_results
from .recording_plot import Page as Page, RecordingPlot as RecordingPlot, plot_recording as plot_recording
from .study import pack as pack, run_study as run_study
from .triage import triage_files as triage_files
