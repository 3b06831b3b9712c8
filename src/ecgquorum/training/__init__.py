"""Training: strategies and their phases, the loop, checkpoints and their store, jobs, and the runs that use them."""

from ecgquorum.training.job_runner import choose_device, train_job
from ecgquorum.training.jobs import TrainingJob, plan_jobs
from ecgquorum.training.phase import Phase, PhaseContext
from ecgquorum.training.plan import TrainingPlan, resolve_recipe
from ecgquorum.training.runs import TrainingOptions, check_trainable, train, train_ensemble, watch_run
from ecgquorum.training.step import Step

__all__ = [
    "Phase",
    "PhaseContext",
    "Step",
    "TrainingJob",
    "TrainingOptions",
    "TrainingPlan",
    "check_trainable",
    "choose_device",
    "plan_jobs",
    "resolve_recipe",
    "train",
    "train_ensemble",
    "train_job",
    "watch_run",
]
