"""The tensor and what it stands on: dtypes, promotion, device, modes, sites, random numbers, printing.

Nothing here knows an operator or a derivative; `ops/` and `autograd/` build on it.
"""
