"""What a numerical analyst asks of an integrator: exact answers where they exist, numbers and pictures elsewhere."""

from leastaction.analysis.conservation import Conservation, Kept
from leastaction.analysis.convergence import Convergence, OrderTable, convergence, order_table
from leastaction.analysis.discrete_lagrangian import DiscreteLagrangian, VariationalOrder
from leastaction.analysis.discrete_symmetries import DiscreteSymmetry
from leastaction.analysis.dispersion import Dispersion, Leading, dispersion
from leastaction.analysis.efficiency import Efficiency, efficiency
from leastaction.analysis.equivalence import Equivalences, SameMap, equivalences, same_map
from leastaction.analysis.fit import Fit, fit_order
from leastaction.analysis.lyapunov import Lyapunov, lyapunov
from leastaction.analysis.resonance import Resonance, resonance
from leastaction.analysis.stability import Gap, Interval, Stability, iteration_matrix, stability, stable_for_all_h
from leastaction.analysis.symmetries import Symmetries, Symmetry, symmetries
from leastaction.analysis.symplectic import (
    Structure,
    reversibility_defect,
    structure,
    symplectic_defect,
    symplectic_matrix,
)
from leastaction.analysis.tangent import Tangent, tangent

__all__ = [
    "Conservation", "Convergence", "DiscreteLagrangian", "DiscreteSymmetry", "Dispersion", "Efficiency",
    "Equivalences", "Fit", "Gap", "Interval", "Kept", "Leading", "Lyapunov", "OrderTable", "Resonance", "SameMap",
    "Stability", "Structure", "Symmetries", "Symmetry", "Tangent", "VariationalOrder", "convergence", "dispersion",
    "efficiency", "equivalences", "fit_order", "iteration_matrix", "lyapunov", "order_table", "resonance",
    "reversibility_defect", "same_map", "stability", "stable_for_all_h", "structure", "symmetries",
    "symplectic_defect", "symplectic_matrix", "tangent",
]  # fmt: skip
