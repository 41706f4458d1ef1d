"""Messages in Chinese: the first line of an error or warning of PyTorch's stays, and nothing else is in English."""

import copy
import math
import re
import warnings

import pytest

import pellucid as torch
from pellucid import graph, nn
from pellucid.core import language
from pellucid.graph import why
from pellucid.graph.tables import cells

F = nn.functional


@pytest.fixture(autouse=True)
def chinese():
    language.set_language("zh")
    yield
    language.set_language(None)


def english_in(text):
    """English outside of quoted code: three words in a row, which no Chinese sentence has."""
    return re.findall(r"[A-Za-z]{2,}(?: [a-z]{2,}){2,}", re.sub(r"`[^`]*`", "", text))


def explained(program):
    """What stands below the first line of the error that a program raises, with its notes; or below that of its warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program()
        except Exception as error:
            first, *rest = [*str(error).split("\n"), *getattr(error, "__notes__", [])]
        else:
            first, *rest = str(caught[-1].message).split("\n")
    assert not re.search("[\u4e00-\u9fff]", first), "programs match on the first line"
    return rest


def overwritten():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y += 1
    y.sum().backward()


def written_in_parts():
    w = torch.ones(1, requires_grad=True)
    state = torch.zeros(4)
    for k in range(1, 4):
        state[k] = state[k - 1] * w
    state.sum().backward()


def stepped_too_early():
    x = torch.ones(1, requires_grad=True)
    y = x * x
    with torch.no_grad():
        x.add_(1)
    y.backward()


def carried_over():
    h, w = torch.ones(1), torch.ones(1, requires_grad=True)
    for _ in range(2):
        h = (h * w).tanh()
        h.backward()


def whole_twice():
    y = torch.ones(1, requires_grad=True).exp()
    y.backward()
    y.backward()


def shared():
    trunk = torch.ones(1, requires_grad=True).exp()
    a, b = trunk * 2, trunk * 3
    a.backward()
    b.backward()


def cut():
    net = nn.Linear(2, 3)
    loss = (net(torch.ones(1, 2)).argmax(dim=1) - 1.0).sum()
    loss.backward()


def read_of_a_non_leaf():
    weight = torch.ones(2, requires_grad=True) * 2
    return weight.grad


def nan_in_forward():
    x = torch.tensor([-4.0], requires_grad=True)
    with warnings.catch_warnings(), torch.autograd.detect_anomaly():
        x.log().sum().backward()


def nan_behind_where():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    with warnings.catch_warnings(), torch.autograd.detect_anomaly():
        torch.where(x > 0, x.sqrt(), 2 * x).sum().backward()


def shapes_in_a_model():
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(2, 1))
    model(torch.ones(1, 4))


def loss_of_pairs():
    F.mse_loss(torch.zeros(3), torch.zeros(3, 1))


def loss_of_no_pairs():
    F.l1_loss(torch.zeros(3), torch.zeros(3, 2, 3))


def infinite_norm():
    net = nn.Linear(1, 2)
    net(torch.ones(1)).sum().backward()
    net.weight.grad[0] = math.inf
    nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)


def schedule_first():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    torch.optim.lr_scheduler.StepLR(optimizer, 1).step()


def another_optimizer():
    weight = nn.Parameter(torch.ones(1))
    torch.optim.SGD([weight]).load_state_dict(torch.optim.Adam([weight]).state_dict())


def nothing_to_optimize():
    torch.optim.SGD([])


def non_leaf_to_optimize():
    torch.optim.SGD([torch.ones(1, requires_grad=True) * 2])


def copied():
    net = nn.Linear(2, 1)
    net.last = net(torch.ones(1, 2))
    copy.deepcopy(net)


def leaf_in_place():
    weight = torch.ones(1, requires_grad=True)
    weight -= 1


def many_numbers():
    (torch.ones(2, requires_grad=True) * 2).backward()


def large_picture():
    x = torch.ones(1, requires_grad=True)
    for number in range(700):
        x = x.sin() if number % (2 + number % 7) else x * number
    graph.of(x).svg(expand="all")


PROGRAMS = [
    overwritten, written_in_parts, stepped_too_early, carried_over, whole_twice, shared, cut, read_of_a_non_leaf, nan_in_forward,
    nan_behind_where, shapes_in_a_model, loss_of_pairs, loss_of_no_pairs, infinite_norm, schedule_first, another_optimizer,
    nothing_to_optimize, non_leaf_to_optimize, copied, leaf_in_place, many_numbers, large_picture,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_explains_an_error_or_a_warning_is_in_chinese(program):
    lines = explained(program)
    assert lines
    assert any(re.search("[\u4e00-\u9fff]", line) for line in lines)
    assert english_in("\n".join(lines)) == []


def test_the_search_for_english_finds_it():
    assert english_in("这是 `code of the program`，it was made here") == ["it was made here"]  # noqa: RUF001


def test_why_answers_in_chinese():
    x = torch.ones(2, requires_grad=True)
    plain, y, waiting = torch.ones(2), x * 2, torch.ones(2, requires_grad=True)
    idle = torch.ones(2, requires_grad=True)
    cut_off = y.detach()
    result = (y * waiting).sum()
    answers = [why(each) for each in (x, plain, y, waiting, idle, cut_off, torch.ones(2, dtype=torch.int64))]
    result.backward()
    answers += [why(x), why(waiting, result)]
    x.grad = None
    answers.append(why(x))
    for answer in answers:
        assert re.search("[\u4e00-\u9fff]", answer.reason)
        assert english_in(str(answer)) == []
    assert str(answers[5]).endswith("如果要让梯度通过，请去掉那里的 detach()。")  # noqa: RUF001


def test_a_made_leaf_is_warned_of_in_chinese():
    loss = (torch.ones(1, requires_grad=True) * 2).detach()
    loss.requires_grad = True
    with pytest.warns(UserWarning, match="梯度不会再往前传") as caught:
        loss.backward()
    assert english_in(str(caught[0].message)) == []


def test_reports_are_in_chinese_and_their_columns_stand_straight():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    x = torch.ones(3, 4)
    y = net(x)
    for report in (graph.memory(net, x), graph.summary(net, x), graph.live(), graph.of(y).text(), graph.chain(y, net[0].bias)):
        assert re.search("[\u4e00-\u9fff]", str(report))
        assert english_in(str(report)) == []
    assert str(graph.summary(net, x)).splitlines()[0].split() == ["模块", "类型", "输出", "参数", "调用次数", "FLOPs", "MACs"]
    assert len({cells(line) for line in str(graph.summary(net, x)).splitlines()[2:5]}) == 1
