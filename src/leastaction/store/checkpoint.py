"""The checkpoint of a stored run: one signed file that is always whole, the old one or the new one."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.disk import replacing, signature, signed_payload
from leastaction.errors import StoreError
from leastaction.reading import contents, entry, mapping, unpacked

_MAGIC = b"leastaction checkpoint\n"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where a run stands.

    facts    steps done and planned, rows in whole chunks, how the run stands, what the solver counted
    tail     rows (q, p) after the last whole chunk
    state    the stepper's arrays, with which the run goes on, exact to the last bit
    """

    facts: Mapping[str, Any]
    tail: NDArray[np.float64]
    state: Mapping[str, NDArray[Any]]

    def write(self, file: Path) -> None:
        stream = io.BytesIO()
        arrays: dict[str, Any] = {f"state_{name}": value for name, value in self.state.items()}
        np.savez(stream, facts=np.array(json.dumps(dict(self.facts))), tail=self.tail, **arrays)
        payload = stream.getbuffer()
        with replacing(file, durable=True) as out:
            out.write(signature(_MAGIC, payload))
            out.write(payload)

    @classmethod
    def read(cls, file: Path) -> Checkpoint:
        try:
            data = contents(file)
        except FileNotFoundError:
            raise StoreError(
                f"{file.parent.parent} has no checkpoint, {file.name}: its run was ended before the first, or somebody "
                f"has removed the checkpoint. Put it back from a copy; if there is none, start the run again elsewhere"
            ) from None
        except ValueError as error:
            raise StoreError(f"the checkpoint cannot be read: {error}") from None
        payload = signed_payload(_MAGIC, data)
        if payload is None:
            raise StoreError(f"the checkpoint {file} is damaged: its checksum does not fit")
        try:
            arrays = unpacked(payload)
            facts = mapping(json.loads(str(entry(arrays, "facts"))), "what it says of the run")
            state = {name[6:]: array for name, array in arrays.items() if name.startswith("state_")}
            return cls(facts, entry(arrays, "tail"), state)
        except Exception as error:
            raise StoreError(f"the checkpoint {file} is damaged: {error}") from error
