"""Selective checkpoints: a policy says of each operator whether its result is kept or recomputed.

The forward's context watches operators and keeps what the policy wants. In the recomputation's context those operators
are not computed: they hand out what was kept. They are recorded all the same, so that what is saved stays the same.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import Any

from pellucid.autograd.around import observing
from pellucid.autograd.declaration import Operator
from pellucid.core.modes import modes
from pellucid.core.tensor import Number, counter

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]

SAC_IGNORED_OPS: set = set()  # operators that no policy is asked about: `detach` is none here


class CheckpointPolicy(Enum):
    """What becomes of an operator's result. MUST and PREFER are the same here: nothing overrules a policy.

    There is no other device to bring results from, so those for the CPU mean recomputing, as in PyTorch.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


SAVE = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class SelectiveCheckpointContext:
    """What a policy is told beside the operator and its arguments: the result, and that this is the forward."""

    def __init__(self, *, is_recompute: bool, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Kept:
    """The results of one call, with the versions they had, and its arguments other than tensors as they were used."""

    def __init__(self, op: Operator, raw, made):
        self.op = op
        self.arrays = [t._array for t in made]
        self.counters = [counter(t) for t in made]
        self.versions = [c.value for c in self.counters]
        kinds = zip(op.parameters, raw, strict=True)
        self.arguments = [value if p.kind == "attribute" else None for p, value in kinds]

    def results(self, may_be_overwritten: bool) -> Any:
        """What the operator's forward returned."""
        if not may_be_overwritten and [c.value for c in self.counters] != self.versions:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated: the result of "
                f"{self.op.name} was written to in place. Let the policy recompute it, write out of place, or pass "
                "allow_cache_entry_mutation=True."
            )
        return self.arrays if self.op.outputs is None or self.op.results is not None else self.arrays[0]


RECOMPUTE, CONSUMED = object(), object()
MISMATCH = (
    "The function did not run the same operators in the forward and in backward: look for what decides it, such as a "
    "global or a counter."
)


class _Caching:
    """The context of the forward."""

    def __init__(self, policy, storage: dict):
        self.policy, self.storage = policy, storage

    def __enter__(self) -> None:
        self.block = observing(self.observe)
        self.block.__enter__()

    def __exit__(self, *exception) -> None:
        self.block.__exit__()
        del self.block  # it leads back here

    def observe(self, op: Operator, bound, raw, made) -> None:
        """Ask the policy about one call."""
        if op in SAC_IGNORED_OPS:
            return
        output = made[0] if op.outputs is not None and op.results is None else tuple(made)
        given = [(p, v._array if isinstance(v, Number) else v) for p, v in zip(op.parameters, bound, strict=True)]
        context = SelectiveCheckpointContext(is_recompute=False, op_output=output)
        args = [v for p, v in given if not p.keyword]
        policy = self.policy(context, op, *args, **{p.name: v for p, v in given if p.keyword})
        keep = policy if isinstance(policy, bool) else policy in SAVE
        self.storage[op].append(_Kept(op, raw, made) if keep else RECOMPUTE)


class _Cached:
    """The context of the recomputation."""

    def __init__(self, storage: dict, may_be_overwritten: bool):
        self.storage, self.may_be_overwritten = storage, may_be_overwritten
        self.counts: dict = {}

    def __enter__(self) -> None:
        self.counts = defaultdict(int)
        self.before, modes.compute = modes.compute, self.compute
        modes.update()

    def __exit__(self, *exception) -> None:
        modes.compute, self.before = self.before, None
        modes.update()

    def compute(self, op: Operator, bound, common):
        """Stands in for Operator.data."""
        below = self.before or Operator.data
        if op in SAC_IGNORED_OPS:
            return below(op, bound, common)
        number = self.counts[op]
        self.counts[op] += 1
        known = self.storage.get(op)
        if known is None:
            raise RuntimeError(f"{op} encountered during backward but not found in storage. {MISMATCH}")
        if number >= len(known):
            raise RuntimeError(
                f"{op} invocation index {number} encountered during backward but not found in storage. {MISMATCH}"
            )
        kept = known[number]
        if kept is RECOMPUTE:
            return below(op, bound, common)
        if kept is CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint: what it keeps is let go when it is used."
            )
        known[number] = CONSUMED
        return kept.results(self.may_be_overwritten), kept.arguments


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation: bool = False) -> tuple:
    """Contexts for the forward and the recomputation of a checkpoint that keeps the results of chosen operators.

    Args:
        policy_fn_or_list: a function of (SelectiveCheckpointContext, operator, *args, **kwargs) that returns a
            CheckpointPolicy; or a list of operators to keep, as functions (`pellucid.mm`) or as policies get them.
        allow_cache_entry_mutation: do not refuse a kept result that was overwritten since.

    Pass `functools.partial(create_selective_checkpoint_contexts, policy)` as `context_fn` of `checkpoint`.

    Raises:
        ValueError: a member of the list is no operator.
        TypeError: neither a function nor a list.
    """
    if isinstance(policy_fn_or_list, list):
        chosen = {_operator(member) for member in policy_fn_or_list}

        def policy(context, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError(
            "policy_fn_or_list must be either a function or a list of ops, not "
            f"{type(policy_fn_or_list).__name__}"
        )
    storage: dict = defaultdict(list)
    return _Caching(policy, storage), _Cached(storage, allow_cache_entry_mutation)


def _operator(member) -> Operator:
    found = member if isinstance(member, Operator) else getattr(member, "operator", None)
    if not isinstance(found, Operator):
        raise ValueError(
            f"Expected op in `op_list` to be an OpOverload but got: {member} of type {type(member)}. Pass the function "
            "of a single operator, such as pellucid.mm; one that is composed of others has no result to keep."
        )
    return found
