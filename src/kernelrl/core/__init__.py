"""Compiled building blocks: kernels, metrics, bonuses, points in buckets, estimates and interpolation; no I/O."""
