"""Scores of what a model says, and plots of what it does."""
