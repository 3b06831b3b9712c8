"""Tuning: a search, by Optuna, for recipes that do better on the tune part; the test part is never touched."""

from ecgquorum.tuning.results import Trial, chosen_trial, pareto_front
from ecgquorum.tuning.search import Search, tune
from ecgquorum.tuning.space import Space, search_space

__all__ = ["Search", "Space", "Trial", "chosen_trial", "pareto_front", "search_space", "tune"]
