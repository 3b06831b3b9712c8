"""Training: strategies and their phases, the loop, checkpoints and the store, and the run that makes an ensemble."""

from ecgquorum.training.loop import Observer
from ecgquorum.training.progress import training_progress
from ecgquorum.training.run import check_trainable, train_ensemble
from ecgquorum.training.strategy import planned_units
from ecgquorum.training.trainings import train_planned

__all__ = ["Observer", "check_trainable", "planned_units", "train_ensemble", "train_planned", "training_progress"]
