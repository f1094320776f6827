"""PyTorch modules and their optimisers as named arrays, and back."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.persistence import State

try:
    import torch as torch
except ImportError as error:
    raise ImportError("this oracle needs PyTorch: pip install torch") from error

Trained = tuple[Any, Any]
"""A module and its optimiser."""


def arrays_of(members: list[Trained]) -> dict[str, NDArray[Any]]:
    """Return copies of all tensors and numbers: "member0/module/weight", "member0/optimizer/0/tensor/exp_avg", ..."""
    arrays = {}
    for m, (module, optimizer) in enumerate(members):
        for name, tensor in module.state_dict().items():
            arrays[f"member{m}/module/{name}"] = tensor.cpu().numpy().copy()
        for index, entries in optimizer.state_dict()["state"].items():
            for name, value in entries.items():
                if torch.is_tensor(value):
                    arrays[f"member{m}/optimizer/{index}/tensor/{name}"] = value.cpu().numpy().copy()
                elif isinstance(value, (int, float)):
                    arrays[f"member{m}/optimizer/{index}/number/{name}"] = np.array(value)
                else:
                    raise TypeError(f"`optimizer` must keep tensors and numbers, got {name} = {value!r:.60}")
    return arrays


def load_arrays(members: list[Trained], state: State) -> list[Trained]:
    """Return `members`, fresh ones with the same settings, after undoing `arrays_of`."""
    for m, (module, optimizer) in enumerate(members):
        tensors, kept = {}, defaultdict[int, dict[str, Any]](dict)
        for name in state:
            match name.split("/"):
                case [member, "module", *path] if member == f"member{m}":
                    tensors["/".join(path)] = torch.tensor(state[name])
                case [member, "optimizer", index, kind, *path] if member == f"member{m}":
                    value = torch.tensor(state[name]) if kind == "tensor" else state[name].item()
                    kept[int(index)]["/".join(path)] = value
        try:
            module.load_state_dict(tensors)
        except RuntimeError as error:
            raise ValueError(f"`state` does not fit the module of member {m}: {error}") from None
        # The settings, such as the step size, are those of the fresh optimiser.
        optimizer.load_state_dict({**optimizer.state_dict(), "state": dict(kept)})
    return members
