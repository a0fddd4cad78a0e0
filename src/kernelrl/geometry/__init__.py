"""Metrics, kernels, and arrangements of points in space."""
