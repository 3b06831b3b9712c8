"""Tuning: search with Optuna for recipes that do better on the tune part; the test part is not used."""

from ecgquorum.tuning.results import Trial, choose_trial, pareto_front
from ecgquorum.tuning.search import Search, TuningOptions, tune
from ecgquorum.tuning.space import Space, search_space

__all__ = ["Search", "Space", "Trial", "TuningOptions", "choose_trial", "pareto_front", "search_space", "tune"]
