"""What users can declare about how a system moves, for certificates (docs/certificates.md, docs/exogenous.md)."""

from kernelrl.models.displacement import Displacement
from kernelrl.models.exogenous import Exogenous

__all__ = ["Displacement", "Exogenous"]
