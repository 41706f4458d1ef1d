"""Array code under the operators: arrays in, arrays out. Nothing here knows a tensor, a graph or an operator."""
