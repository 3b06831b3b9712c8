"""Training: strategies and their phases, the loop, checkpoints and the store, and the run that makes an ensemble."""

from ecgquorum.training.jobs import train_job
from ecgquorum.training.loop import Observer
from ecgquorum.training.progress import training_progress
from ecgquorum.training.run_training import check_trainable, train_ensemble
from ecgquorum.training.strategy import plan_jobs

__all__ = ["Observer", "check_trainable", "plan_jobs", "train_ensemble", "train_job", "training_progress"]
