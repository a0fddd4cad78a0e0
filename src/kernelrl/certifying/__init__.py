"""Bounds on V* from data and a declared model (`kernelrl.models`); docs/certificates.md, and theory.md for the proof.

cells         rooms divided into boxes, on which bounds are constant
samples       which samples count, and what is known of their displacements
rewards       bounds on mean rewards over cells;  noisy_rewards: where rewards are random
bernstein     the empirical Bernstein bonus
pools         how samples are counted for each piece of a room: all alike, or near ones only
sums          sums over displacements for all cells at once, with a bound on their rounding
plan          backward induction
nodes         finer bounds, multilinear between corners of cells;  node_rewards: rewards there;  refined: both forms
declaration   a test of the declaration

For exogenous noise (docs/exogenous.md):

recovered     the noise of transitions, and which samples count
images        the cells that a box of states meets
absorbing     where episodes end
exogenous     backward induction;  exogenous_making: from transitions to bounds
noise_test    a test of the declaration
"""
