"""Calls that fail, and values that are not finite: where they were made, and of what."""

# ruff: noqa: RUF001 (Chinese punctuation is meant)

__all__ = ["FAILURES"]

FAILURES = {
    # calls
    "{call} failed{place}": "{call} 出错{place}",
    "{call} failed{place}, in module {module}": "{call} 出错{place}，在模块 {module} 中",
    # what is refused
    (
        "This tensor has shape {shape}. Reduce it to one number, for example with .sum() or .mean(), or pass gradient= of "
        "its shape."
    ): "这个张量的形状是 {shape}。请先把它归约成一个数，例如用 .sum() 或 .mean()，或者传入同样形状的 gradient=。",
    "Write to it under torch.no_grad(), or to a clone() of it.": "请在 torch.no_grad() 下写入，或者写入它的副本 clone()。",
    "Write to it under torch.no_grad(), or to a clone() of the leaf.": "请在 torch.no_grad() 下写入，或者写入叶子节点的副本 clone()。",
    "The tensor of shape {shape} was expanded, or its array is read-only.": "形状为 {shape} 的张量是由 expand 得到的，或者它的数组是只读的。",
    "This one is {dtype}. Convert it first, for example with .float().": "这个张量的类型是 {dtype}。请先转换，例如用 .float()。",
    "No gradient is computed for it. Set requires_grad_() on the leaf it was made from.": (
        "不会为它计算梯度。请对它所来自的叶子节点调用 requires_grad_()。"
    ),
    "The one at `{path}` of the {type}": "位于 {type} 的 `{path}` 的张量",
    "This one": "这个张量",
    "{tensor} was made by {operation}{place}.": "{tensor}由 {operation} 计算得到{place}。",
    "Keep .detach() of it there, or copy before it is computed.": "请在那里改为保存它的 .detach()，或者在计算它之前复制。",
    "Copy .detach() of it instead.": "请改为复制它的 .detach()。",
    # what arrays hold
    "from {low} to {high}": "范围 {low} 到 {high}",
    "all {value}": "全部为 {value}",
    "value {value}": "值为 {value}",
    "  {name}: {what}": "  {name}：{what}",
    "  result: {what}": "  结果：{what}",
    "  first at {place}": "  首个位置 {place}",
    "  first at {place}: {values}": "  首个位置 {place}：{values}",
    "gradient in": "传入的梯度",
    "saved {name}": "保存的 {name}",
    "gradient out": "传出的梯度",
    # where they were made
    "{n} of {size} values were made in the forward from values that are infinite, but no nan{place}": (
        "{size} 个值中有 {n} 个，是前向传播由无穷大（而不是 nan）产生的{place}"
    ),
    "{n} of {size} values were made in the forward from finite values{place}": "{size} 个值中有 {n} 个，是前向传播由有限值产生的{place}",
    "The operation ran{place}": "该运算的位置{place}",
    "The nan was in the gradient that came in: in what backward was given, or in what a hook returned.": (
        "传入的梯度里已经有 nan：来自传给 backward 的梯度，或来自某个钩子的返回值。"
    ),
    (
        "The nan is in what the forward saved: run the forward in detect_anomaly() too, and it stops at the operation that "
        "makes it."
    ): "nan 在前向传播保存的值里：请把前向传播也放进 detect_anomaly()，它会停在产生 nan 的运算上。",
    "The first inf of the forward was made by {how}.": "前向传播中最早的 inf 由此产生：{how}。",
    "The first inf of the backward was made by {how}.": "反向传播中最早的 inf 由此产生：{how}。",
    "{operation}{place}: {result}, of {operands}": "{operation}{place}：{result}，操作数 {operands}",
    "{name} {what}": "{name} {what}",
    "nothing": "无",
    "A gradient is infinite.": "有一个梯度是无穷大。",
    "{what}, made by {operation}{place}": "{what}，由 {operation} 计算得到{place}",
    "backward() starts from a result that is not finite: {what}. Its gradients may be finite all the same.": (
        "backward() 的起点不是有限值：{what}。它的梯度仍可能是有限的。"
    ),
    "Run the forward in detect_anomaly() too, and it stops at the operation that makes the first nan.": (
        "请把前向传播也放进 detect_anomaly()，它会停在最先产生 nan 的运算上。"
    ),
    # where()
    "Choose before the operation, not after it: give it a harmless input there, as pellucid.safe_where does.": (
        "请在运算之前选择，而不是之后：先给它一个无害的输入，就像 pellucid.safe_where 那样。"
    ),
    "A where() after it that takes other values there does not help: the gradient would be nan all the same.": (
        "在它之后用 where() 选取别的值也没有用：梯度照样是 nan。"
    ),
    (
        "{n} of {size} values belong to the branch that where() did not take{place}: the gradient that comes from there is 0, and 0 "
        "times inf or nan is nan."
    ): "{size} 个值中有 {n} 个，属于 where() 没有选中的分支{place}：从那里传来的梯度是 0，而 0 乘以 inf 或 nan 得到 nan。",
}
