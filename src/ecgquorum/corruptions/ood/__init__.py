"""Sets of recordings that are no ECG of the classes that a model knows."""
