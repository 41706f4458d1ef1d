"""Texts about graphs outside the page: `Graph.text`, the chain rule, failures; reports of cost, memory and living graphs."""

# ruff: noqa: RUF001 (Chinese punctuation is meant)

__all__ = ["GRAPH"]

GRAPH = {
    # the graph as text
    "graph of {title}: {counts}; {saved}": "{title} 的计算图：{counts}；{saved}",
    "Computation graph of {title}": "{title} 的计算图",
    "{leaves} ({elements})": "{leaves}（{elements}）",
    "{n} element": "{n} 个元素",
    "{n} elements": "{n} 个元素",
    "{n} input or constant": "{n} 个输入或常量",
    "{n} inputs and constants": "{n} 个输入和常量",
    "saved values freed": "保存的值已释放",
    "{size} saved for backward": "为反向传播保存 {size}",
    "{name} (above)": "{name}（见上）",
    "{name} (below)": "{name}（见下）",
    "... and {n} more like it": "... 还有 {n} 个同样的",
    "... ({n} more, nested too deep to show)": "... （还有 {n} 个，嵌套太深，没有显示）",
    "of {operands}": "作用于 {operands}",
    "the same twice": "同一个值用了两次",
    "the same {n} times": "同一个值用了 {n} 次",
    " (cut by {reason})": "（被 {reason} 断开）",
    "{n} infinite": "{n} 个 Inf",
    # the chain rule
    "no path leads from {variable} to {result}": "从 {variable} 到 {result} 没有路径",
    ", the sum over {paths}:": "，{paths}之和：",
    "(not all local derivatives are known: take the graph with values=True before backward)": (
        "（有的局部导数未知：请在反向传播之前用 values=True 获取计算图）"
    ),
    "... ({n} more) ...": "... （还有 {n} 个） ...",
    # failures
    "the program": "程序",
    " in {module}": "（模块 {module}）",
    "{what} failed{where}: {error}": "{what} 出错{where}：{error}",
    # cost
    "cost of {title}": "{title} 的计算量",
    "forward": "前向传播",
    "backward": "反向传播",
    "forward and backward": "前向加反向",
    "recomputed by checkpoints": "检查点重新计算",
    "bytes moved": "读写字节数",
    "1 MAC (multiply-add) is 2 FLOPs; all else is 1 FLOP an operation, see the rules.": (
        "1 次 MAC（乘加）算 2 FLOPs，其余每个运算算 1 FLOP，见各算子的规则。"
    ),
    "parameters: {n} ({size}), each counted once": "参数：{n} 个（{size}），每个只算一次",
    "uncounted: {what}": "未计入：{what}",
    "none": "无",
    "no rule": "没有规则",
    "calls": "调用次数",
    "parameters": "参数",
    "backward FLOPs": "反向 FLOPs",
    "operator": "算子",
    "rule": "规则",
    "(elsewhere)": "（别处）",
    # summary
    "output": "输出",
    "(see {path})": "（见 {path}）",
    "parameters: {n}, of which {trainable} are trainable and {frozen} are not": (
        "参数：{n} 个，其中 {trainable} 个可训练，{frozen} 个不可训练"
    ),
    "parameters {size}": "参数 {size}",
    "buffers: {n}": "缓冲区：{n} 个",
    "buffers {size}": "缓冲区 {size}",
    "forward: {flops} FLOPs, {macs} MACs": "前向传播：{flops} FLOPs、{macs} MACs",
    "inputs {size}": "输入 {size}",
    "results of all operations {size}": "所有运算的结果 {size}",
    "memory: {sizes}": "内存：{sizes}",
    # memory
    "memory of {title}": "{title} 的内存",
    "{size} saved for backward in {n} piece": "为反向传播保存 {size}，共 {n} 块",
    "{size} saved for backward in {n} pieces": "为反向传播保存 {size}，共 {n} 块",
    "a backward has freed saved values already": "反向传播已经释放了保存的值",
    "nodes also hold {parameters} of parameters and {inputs} of inputs, which live anyway": (
        "节点还引用了 {parameters} 参数和 {inputs} 输入，它们本来就在内存里"
    ),
    "{size} in use after the forward": "前向传播之后占用 {size}",
    "peak {size} in the {phase} of {name}": "峰值 {size}，出现在 {name} 的{phase}",
    "an operation that is not in the graph": "不在图中的运算",
    "the gradient of {name}": "{name} 的梯度",
    "{value} of {node}": "{node} 的 {value}",
    "saved": "保存",
    "bytes": "字节数",
    "nodes": "节点数",
    "saved as": "保存为",
    # living graphs
    "{n} graph alive": "{n} 个计算图仍在内存中",
    "{n} graphs alive": "{n} 个计算图仍在内存中",
    "{graphs}: {n} operations, {size} kept for backward": "{graphs}：{n} 个运算，为反向传播保留 {size}",
    "held by": "被谁引用",
    "computed by": "由谁计算",
    "operations": "运算数",
    "depth": "深度",
    "freed": "已释放",
    "kept": "保留",
    "{key} of {owner}": "{owner} 的 {key}",
    "an item of a {type} of {n}": "长度为 {n} 的 {type} 的一项",
    "a closure": "一个闭包",
    "(not found)": "（没有找到）",
    "a {type}": "一个 {type}",
    "a dict of {n}": "长度为 {n} 的字典",
}
