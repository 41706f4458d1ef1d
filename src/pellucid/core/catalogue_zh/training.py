"""Training: shapes in losses, clipping, optimizers, schedules of learning rates."""

# ruff: noqa: RUF001 (Chinese punctuation is meant)

__all__ = ["TRAINING"]

TRAINING = {
    # shapes in losses
    "do not broadcast": "无法广播",
    "broadcast to {shape}, so that the loss has {n} terms": "会广播成 {shape}，损失因此有 {n} 项",
    "Here {input} of shape {a} and {target} of shape {b} {effect}.": "这里形状为 {a} 的 {input} 和形状为 {b} 的 {target} {effect}。",
    "At {site}": "位置：{site}",
    "If they belong together one by one, use {code}.": "如果两者应当逐个对应，请用 {code}。",
    "If that is meant, say so: {code}.": "如果确实想这样，请明确写出：{code}。",
    "Each value of the input needs one of the target.": "输入的每个值都需要一个对应的目标值。",
    # clipping
    "Not finite is the gradient of {tensors}.": "梯度中含有 NaN 或无穷大的是：{tensors}。",
    "Every gradient is finite, the sum overflows.": "每个梯度都是有限值，但总和溢出了。",
    "detect_anomaly() names the operation that makes the first such value.": "detect_anomaly() 会指出是哪个运算最先产生了这样的值。",
    "number {number}": "序号 {number}",
    "{counts} of {n}": "共 {n} 个元素，其中 {counts}",
    "{tensor} of shape {shape} ({counts})": "{tensor}，形状 {shape}（{counts}）",
    # optimizers
    "Pass [tensor] for a single one.": "只有一个张量时请传入 [tensor]。",
    "Expected at least one tensor. An iterator, such as model.parameters(), can be used only once.": (
        "至少需要一个张量。像 model.parameters() 这样的迭代器只能用一次。"
    ),
    "It has {entries} entries and {tensors} different tensors: a tensor that stands there twice is updated twice a step.": (
        "列表有 {entries} 项，但只有 {tensors} 个不同的张量：重复出现的张量每一步会被更新两次。"
    ),
    (
        "One of shape {shape} is a result of {operation}. Optimize the tensors it was computed from, or its "
        "detach().requires_grad_()."
    ): "形状为 {shape} 的张量是 {operation} 的结果，不是叶子节点。请优化计算它所用的叶子节点，或者优化它的 detach().requires_grad_()。",
    "Its parameter group {number} has no {names}.": "其中参数组 {number} 缺少 {names}。",
    "{optimizer} does not know the options {names}.": "{optimizer} 没有 {names} 这些选项。",
    "Parameter group {number} has {names}.": "参数组 {number} 有 {names}。",
    "Its state of parameter {number} has no {names}.": "其中参数 {number} 的状态缺少 {names}。",
    "There is {names}.": "现有 {names}。",
    "Give vectors and embeddings to another optimizer, such as AdamW.": "向量和嵌入层的参数请交给别的优化器，例如 AdamW。",
    "Write the update as tensor operations, new = param - lr * grad, to differentiate through it.": (
        "如果要对更新本身求导，请用张量运算写出更新：new = param - lr * grad。"
    ),
    "Was the parameter's .data replaced after backward?": "是不是在反向传播之后替换了参数的 .data？",
    "The parameter changed its shape, or the state is another one's.": "参数的形状变了，或者这是另一个参数的状态。",
    "Use clone() to give it memory of its own.": "请用 clone() 让它拥有自己的内存。",
    # schedules
    "The schedule was stepped first at {site}": "调度器第一次 step 的位置：{site}",
    "Build a new schedule.": "请新建一个调度器。",
    (
        "Load the optimizer's state first, set group['initial_lr'] to the rate at the start of the schedule, or "
        "leave last_epoch out for a new run."
    ): "请先加载优化器的状态，或把 group['initial_lr'] 设为调度开始时的学习率；如果是重新训练，就不要传 last_epoch。",
    "Call step(metrics).": "请调用 step(metrics)。",
}
