"""Reports of experiments over several problems."""
