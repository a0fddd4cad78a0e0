"""The parts of `tests/soak.py`: each tries to break one promise of docs/reliability.md, as often as it is told."""
