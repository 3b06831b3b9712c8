"""Training: what a member sees, the loop, its checkpoints, and the run that makes an ensemble of it."""

from ecgquorum.training.loop import Evaluation, Objective, Observer, evaluate_member, train_member
from ecgquorum.training.progress import training_progress
from ecgquorum.training.run import information_range, member_identity, predict_part, train_ensemble

__all__ = [
    "Evaluation",
    "Objective",
    "Observer",
    "evaluate_member",
    "information_range",
    "member_identity",
    "predict_part",
    "train_ensemble",
    "train_member",
    "training_progress",
]
