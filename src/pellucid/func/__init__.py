"""Functions of functions: derivatives, batching, and modules as functions of their parameters (PyTorch's `torch.func`)."""

from pellucid.func.derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from pellucid.func.module_calls import functional_call, stack_module_state
from pellucid.func.vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
