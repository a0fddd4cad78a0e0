"""Policies to deploy as tables, for controllers and other languages: C99 headers and JSON (docs/export.md)."""

from kernelrl.portable.forms import Form, GridTable, grid_table
from kernelrl.portable.trees import JointTrees, Trees

__all__ = ["Form", "GridTable", "JointTrees", "Trees", "grid_table"]
