"""Metrics, kernels, and data structures for points in space."""
