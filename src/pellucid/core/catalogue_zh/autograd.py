"""Explanations of gradients: `why`, in-place errors, a second backward, values that are not finite, graphs that grow."""

# ruff: noqa: RUF001 (Chinese punctuation is meant)

__all__ = ["AUTOGRAD"]

WHY = {
    "this tensor of shape {shape}": "这个形状为 {shape} 的张量",
    "{subject} has no valid history: {error}": "{subject} 的历史已经失效：{error}",
    # there is one
    "{subject} has a gradient, of shape {shape}.": "{subject} 有梯度，形状为 {shape}。",
    "Another backward will add to it.": "再次反向传播会在它上面累加。",
    "It has been written to {n} time since it was made.": "创建之后它又被写入了 {n} 次。",
    "It has been written to {n} times since it was made.": "创建之后它又被写入了 {n} 次。",
    "Each backward adds to it: to begin anew, set {name}.grad = None or call zero_grad() before.": (
        "每次反向传播都会累加梯度：要重新开始，请先设 {name}.grad = None 或调用 zero_grad()。"
    ),
    # it does not require grad
    "{subject} does not require grad: it is made of values that were taken out of the graph{place}.": (
        "{subject} 不需要梯度：计算它所用的值已经脱离了计算图{place}。"
    ),
    "Compute it from the tensors themselves, by operations that have a derivative.": "请直接用这些张量来计算，并且只用可以求导的运算。",
    "{subject} does not require grad: tensors of type {dtype} have no gradient.": "{subject} 不需要梯度：{dtype} 类型的张量没有梯度。",
    "Use a floating-point type.": "请使用浮点类型。",
    "{subject} does not require grad: it was made so, or nothing it was computed from requires grad.": (
        "{subject} 不需要梯度：创建时没有设置 requires_grad，或者计算它所用的张量都不需要梯度。"
    ),
    "Recording is off here (no_grad or inference_mode).": "这里不记录计算图（处于 no_grad 或 inference_mode 中）。",
    "Set requires_grad_() on the tensors to differentiate by before they are used.": (
        "请在使用之前，对要求导的张量调用 requires_grad_()。"
    ),
    "{subject} does not require grad: its gradient path was cut {how}.": "{subject} 不需要梯度：它的梯度路径被断开了，断开处是 {how}。",
    "Leave out detach() there if gradients are to flow through.": "如果要让梯度通过，请去掉那里的 detach()。",
    "Leave out detach_() there if gradients are to flow through.": "如果要让梯度通过，请去掉那里的 detach_()。",
    "Use the tensor itself in place of its .data if gradients are to flow through.": (
        "如果要让梯度通过，请直接使用张量本身，而不是它的 .data。"
    ),
    "Move that line out of the no_grad block if gradients are to flow through.": "如果要让梯度通过，请把那一行移到 no_grad 块之外。",
    "Move that line out of the inference_mode block if gradients are to flow through.": (
        "如果要让梯度通过，请把那一行移到 inference_mode 块之外。"
    ),
    (
        "{operation} has no derivative: compute the result from what it was given, not from what it returned, by operations that "
        "have one."
    ): "{operation} 不能求导：请从它的输入出发，用可以求导的运算来计算结果，而不要使用它的输出。",
    (
        "{subject} does not require grad: it is made of a derivative, taken{place}, that is constant in all that requires grad. "
        "Its own derivative is 0."
    ): "{subject} 不需要梯度：计算它所用的导数{place}对所有需要梯度的张量都是常数，它自身的导数为 0。",
    "Count it as 0: nothing is to be differentiated.": "把它当作 0 即可，没有什么需要求导。",
    # it is no leaf
    "{subject} is not a leaf: {operation} made it{place}. Gradients are kept in leaves only.": (
        "{subject} 不是叶子节点：它由 {operation} 计算得到{place}。只有叶子节点才保留梯度。"
    ),
    "It was computed from the leaf {leaf}.": "它由这个叶子节点计算得到：{leaf}。",
    "It was computed from the leaves {leaves}.": "它由这些叶子节点计算得到：{leaves}。",
    "It was computed from the leaves {leaves} and {n} more.": "它由这些叶子节点计算得到：{leaves}，还有另外 {n} 个。",
    "{leaf} (made{place})": "{leaf}{place}",
    "of shape {shape} that no variable holds": "（形状 {shape}，没有变量引用它）",
    "Read {grads}, or call {name}.retain_grad() before backward.": (
        "请读取 {grads}，或者在反向传播之前调用 {name}.retain_grad()。"
    ),
    "Hold the leaf in a variable and read its grad, or call {name}.retain_grad() before backward.": (
        "请用变量保存叶子节点并读取它的 .grad，或者在反向传播之前调用 {name}.retain_grad()。"
    ),
    "Call {name}.retain_grad() before backward.": "请在反向传播之前调用 {name}.retain_grad()。",
    # it waits
    "{subject} had a gradient that was dropped{place}; no backward has reached it since.": (
        "{subject} 的梯度已被清除{place}，此后没有反向传播再到达它。"
    ),
    "Read it before that.": "请在那之前读取。",
    "{subject} has no gradient, though a derivative was taken{place}.": "已经求过导{place}，但 {subject} 没有梯度。",
    "autograd.grad() returns gradients and fills in none, and backward(inputs=...) fills in those of its inputs only.": (
        "autograd.grad() 只返回梯度，不写入 .grad；backward(inputs=...) 只写入 inputs 的 .grad。"
    ),
    "{subject} waits for a gradient: `{result}` was computed from it, and no backward has run through that graph.": (
        "{subject} 还没有得到梯度：`{result}` 由它计算得到，但那个计算图还没有执行过反向传播。"
    ),
    "{subject} waits for a gradient: `{result}` was computed from it, and no backward has filled it in.": (
        "{subject} 还没有得到梯度：`{result}` 由它计算得到，但还没有反向传播把梯度写进来。"
    ),
    "a result": "某个结果",
    "Call {result}.backward().": "请调用 {result}.backward()。",
    "{subject} has no gradient: the backward{place} went through it before retain_grad() was called.": (
        "{subject} 没有梯度：反向传播{place}经过它的时候，还没有调用 retain_grad()。"
    ),
    "Call {name}.retain_grad() before that backward.": "请在那次反向传播之前调用 {name}.retain_grad()。",
    # changed in place
    (
        "{subject} was changed in place{place}, itself or what it is a view of, after retain_grad(): the result was computed "
        "from what {operation} made{made}, which it is no more."
    ): "在 retain_grad() 之后，{subject} 或它所属的张量被原地修改了{place}：结果用的是 {operation} 当时算出的值{made}，而它已经不是那个值了。",
    "Change it out of place, or compute the result after the change.": "请不要原地修改，或者在修改之后再计算结果。",
    (
        "{subject} shares its memory with what was changed in place{place}: what was taken from it before was then taken anew from "
        "the base of both, past this tensor, so that no gradient comes by here."
    ): (
        "{subject} 与被原地修改的张量共享内存{place}：此前由它得到的视图，之后都从共同的基张量重新获取，不再经过这个张量，"
        "所以梯度不会到达这里。"
    ),
    "Call retain_grad() on the base, or take the views after the change.": "请对基张量调用 retain_grad()，或者在修改之后再取视图。",
    # nothing leads to it
    "{subject} has no gradient: no result that a variable of the running functions holds was computed from it.": (
        "{subject} 没有梯度：正在运行的函数的变量里，没有任何结果是由它计算出来的。"
    ),
    "{subject} has no gradient: `{result}` was not computed from it.": "{subject} 没有梯度：`{result}` 不是由它计算出来的。",
    "{subject} has no gradient: the result asked about was not computed from it.": "{subject} 没有梯度：所问的结果不是由它计算出来的。",
    "It was made to require grad{place}: what was computed from it before does not count.": (
        "它是后来才设为需要梯度的{place}：在那之前由它计算出来的结果不算在内。"
    ),
    "A path was cut {where}.": "有一条路径被断开了，断开处是 {where}。",
    "If that was it, do without the cut.": "如果就是这个原因，请去掉断开它的操作。",
    "Use it in what you differentiate; why(tensor, root) asks about one result.": (
        "请在要求导的计算中使用它；why(tensor, root) 可以针对某一个结果提问。"
    ),
    # a result that was made a leaf
    (
        "backward() starts from a tensor that was computed, but whose gradient path was cut by {operation}{place}. Setting "
        "requires_grad = True on it{made} has made it a leaf, with nothing before it: no gradient goes further, and nothing "
        "will be trained. Take the setting out, and do without the cut."
    ): (
        "backward() 的起点是计算得到的张量，但它的梯度路径已被 {operation} 断开{place}。对它设置 requires_grad = True{made}"
        "只是把它变成了叶子节点，前面什么也没有：梯度不会再往前传，什么也训练不了。请去掉这个设置，并避免断开梯度。"
    ),
    (
        "backward() starts from a tensor on which requires_grad = True was set{made}. That makes it a leaf, with nothing before "
        "it: no gradient goes further, and nothing will be trained. Take the setting out, and ask pellucid.graph.why() of the "
        "tensor why it does not require grad by itself."
    ): (
        "backward() 的起点是一个设置了 requires_grad = True 的张量{made}。这样它就成了叶子节点，前面什么也没有：梯度不会再往前传，"
        "什么也训练不了。请去掉这个设置，并用 pellucid.graph.why() 查看它为什么本来不需要梯度。"
    ),
}

OVERWRITTEN = {
    "  value:        {value}": "  变量：{value}",
    "  made:         {how}": "  创建：{how}",
    "  saved:        {how}": "  保存：{how}",
    "  overwritten:  {how}": "  覆盖：{how}",
    "by {operation}{place}": "{operation}{place}",
    "a part of `{name}`": "`{name}` 的一部分",
    "no variable holds it now": "现在没有变量引用它",
    "as a leaf{place}": "作为叶子节点创建{place}",
    "outside the graph: it needs no gradient": "在计算图之外：它不需要梯度",
    "an assignment": "赋值",
    "once": "1 次",
    "{n} times": "{n} 次",
    "{first}": "{first}",
    "{first}, {n} times": "{first}，共 {n} 次",
    "{first}; {n} times in all, last {last}": "{first}；共 {n} 次，最后一次是 {last}",
    (
        "The values of a leaf were changed between forward and backward. Call backward() before they change (before "
        "optimizer.step()), or run the forward again after it."
    ): (
        "叶子节点的值在前向传播和反向传播之间被改变了。请在改变之前（optimizer.step() 之前）调用 backward()，"
        "或者在改变之后重新执行前向传播。"
    ),
    "Write to a copy: {name} = {name}.clone() before that.": "请写入副本：在那之前加上 {name} = {name}.clone()。",
    "Write to a copy: {name} = {name}.clone() before that line.": "请写入副本：在那一行之前加上 {name} = {name}.clone()。",
    (
        "Where the parts of a tensor are written one by one: collect them in a list, parts.append(...), and join them at the "
        "end, {name} = torch.stack(parts) (or torch.cat)."
    ): (
        "逐个写入张量的各个部分时，请先把它们收集到列表里：parts.append(...)，最后再合并：{name} = torch.stack(parts)"
        "（或 torch.cat）。"
    ),
    "Write out of place there, {name} = {name}.{operation}(...), or to a copy: {name} = {name}.clone() before that line.": (
        "请在那里改用非原地操作：{name} = {name}.{operation}(...)；或者写入副本：在那一行之前加上 {name} = {name}.clone()。"
    ),
    "{operation}_ ran within that line: build {modules} with inplace=False.": (
        "{operation}_ 是在那一行内部执行的：请用 inplace=False 创建 {modules}。"
    ),
    "{operation}_ ran within that line: where it is a module, build it with inplace=False.": (
        "{operation}_ 是在那一行内部执行的：如果它来自某个模块，请用 inplace=False 创建该模块。"
    ),
}

TWICE = {
    "  shared:          {what}": "  共用节点：{what}",
    "  first backward: {place}": "  首次反向：{place}",
    "  carried over:    {value}, made by {maker}{made}, before that backward; used after it by {user}{used}": (
        "  沿用的值：{value}，在那次反向传播之前由 {maker} 计算得到{made}；之后又被 {user} 使用{used}"
    ),
    "{operation}, made{place}": "{operation}{place}",
    "a value": "某个值",
    "Read saved values before that backward.": "请在那次反向传播之前读取保存的值。",
    (
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
        "after calling backward: the first backward then keeps them all in memory."
    ): (
        "如果确实需要对同一个计算图反向传播两次，或者要在 backward 之后读取保存的值，请指定 retain_graph=True："
        "这样第一次反向传播会把这些值全部留在内存里。"
    ),
    (
        "Two results share this part of the graph: add them and call backward once, (a + b).backward(), or compute the shared "
        "part again for the second."
    ): "两个结果共用了这部分计算图：请把它们相加，只调用一次 backward：(a + b).backward()；或者为第二个结果重新计算共用的部分。",
    "This whole graph has been differentiated: run the forward again before each backward.": (
        "这个计算图已经整个求过导了：每次反向传播之前，请重新执行前向传播。"
    ),
    (
        "Or, if that backward began at another result: two results share this part of the graph: add them and call backward once, "
        "(a + b).backward(), or compute the shared part again for the second."
    ): (
        "或者，如果那次反向传播是从另一个结果开始的：两个结果共用了这部分计算图，请把它们相加，只调用一次 backward："
        "(a + b).backward()；或者为第二个结果重新计算共用的部分。"
    ),
    "The value comes from the last iteration of a loop: detach it there: {detach} before it is used again.": (
        "这个值来自循环的上一次迭代：再次使用之前，请先让它脱离计算图：{detach}。"
    ),
    "If the value is carried over from one step to the next, detach it there: {detach}.": (
        "如果这个值要从一步沿用到下一步，请先让它脱离计算图：{detach}。"
    ),
    "If its gradient is wanted twice, add the results and call backward once, or compute it again.": (
        "如果需要它的两份梯度，请把结果相加后只调用一次 backward，或者重新计算它。"
    ),
}

GROWTH = {
    (
        "the graph of {what}, made at {site}, grows with every iteration: it is {depth} operations deep, and {freed} of its {nodes} "
        "operations have been differentiated already. It keeps the graphs of all earlier iterations alive."
    ): (
        "{what}（{site}）的计算图每次迭代都在变大：深度已达 {depth} 个运算，{nodes} 个运算中有 {freed} 个已经求过导。"
        "它让之前所有迭代的计算图都留在内存里。"
    ),
    "a tensor": "某个张量",
    (
        "To add up numbers, use loss.item() or loss.detach(); where a state is carried over, detach() it once in each iteration. "
        "pellucid.graph.live() shows which names hold graphs."
    ): (
        "累加数值请用 loss.item() 或 loss.detach()；需要沿用状态时，每次迭代请 detach() 一次。"
        "pellucid.graph.live() 会列出哪些变量引用着计算图。"
    ),
}

AUTOGRAD = {**WHY, **OVERWRITTEN, **TWICE, **GROWTH}
