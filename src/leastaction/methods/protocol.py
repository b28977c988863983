"""What runs and analyses ask of a method. A kind of method is a class; nobody else asks for the kind of a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import mpmath
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from leastaction.methods.linear_form import LinearForm
    from leastaction.methods.oscillator import OscillatorStep

Branch = Literal["followed", "any"]


class Method(ABC):
    """A one-step method. One step is a step of `root` for each entry of `parts`, whose sum is one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the literature."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The text from which `la.method` makes the method again."""

    @property
    @abstractmethod
    def order(self) -> int:
        """Its order."""

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether a step of −h undoes a step of h."""

    @property
    def symplectic(self) -> bool:
        """Whether its steps conserve the symplectic form."""
        return False

    @property
    def degree(self) -> int | None:
        """Of the polynomial that is the motion on a step; None: a step has none of its own."""
        return None

    @property
    def branch(self) -> Branch:
        """Which root of the equations of a step is taken."""
        return "followed"

    @property
    def citations(self) -> tuple[str, ...]:
        """Keys of the papers behind it, in references.bib."""
        return ()

    @property
    def root(self) -> Method:
        """The method whose steps are done."""
        return self

    def factors(self, digits: int = 17) -> tuple[Any, ...]:
        """The lengths of these steps, of h, as mpmath numbers."""
        return (mpmath.mpf(1),)

    @property
    def parts(self) -> NDArray[np.float64]:
        """The same in float64."""
        return np.array([float(x) for x in self.factors()])

    @property
    def nodes(self) -> NDArray[np.float64]:
        """Where a step reads what drives the system, in units of h."""
        raise TypeError(f"{self.name} does not say where it reads inputs: it has no nodes")

    def linear_form(self, digits: int | None = None) -> LinearForm:
        """One step of the root on a linear system, as small matrices: in float64, or as mpmath numbers."""
        raise TypeError(f"{self.name} does not say what its step is on a linear system: it has no linear_form")

    def on_oscillator(self) -> OscillatorStep:
        """One step on the oscillator, exactly, as rational functions of (hω)²."""
        raise TypeError(f"{self.name} does not say what its step is on the oscillator: it has no on_oscillator")
