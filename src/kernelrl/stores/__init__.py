"""Stores of observed transitions: every sample, counts at representative states, or counts in cells."""
