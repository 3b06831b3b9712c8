"""Simulated ECG recordings: a moving dipole, rhythms and noise."""

from ecgquorum.simulation.rhythms import LABELS, Simulation, simulate

__all__ = ["LABELS", "Simulation", "simulate"]
