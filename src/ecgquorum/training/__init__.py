"""Training: strategies and their phases, the loop, checkpoints and their store, jobs, and the runs that use them."""

from ecgquorum.training.job_runner import choose_device, train_job
from ecgquorum.training.jobs import TrainingJob, plan_jobs
from ecgquorum.training.phase import Phase, PhaseContext
from ecgquorum.training.plan import TrainingPlan, resolve_recipe
from ecgquorum.training.risk_conditions import RiskCondition, attack_condition, corruption_condition, default_conditions
from ecgquorum.training.risk_fit import RiskOptions, fit_risk
from ecgquorum.training.runs import TrainingOptions, check_trainable, train, train_ensemble, watch_run
from ecgquorum.training.step import Step

__all__ = [
    "Phase",
    "PhaseContext",
    "RiskCondition",
    "RiskOptions",
    "Step",
    "TrainingJob",
    "TrainingOptions",
    "TrainingPlan",
    "attack_condition",
    "check_trainable",
    "choose_device",
    "corruption_condition",
    "default_conditions",
    "fit_risk",
    "plan_jobs",
    "resolve_recipe",
    "train",
    "train_ensemble",
    "train_job",
    "watch_run",
]
