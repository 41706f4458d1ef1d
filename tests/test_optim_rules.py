"""Every update rule against fixed values, and what all of them have to do with layouts, types and sizes."""

import numpy as np
import pytest

import pellucid
from pellucid.core.tensor import Parameter, wrap

START = [[1.0, -2.0], [0.5, 0.0]]
GRADIENTS = [
    [[0.5, -1.0], [0.0, 2.0]],
    [[-0.25, 0.75], [1e-3, -2.0]],
    [[1.5, 0.1], [-0.3, 0.4]],
    [[0.2, -0.6], [0.7, 0.0]],
    [[-1.0, 1.0], [0.05, 0.9]],
    [[0.3, 0.3], [-2.0, -0.1]],
]

# (optimizer, options, the four elements after a step with each of the gradients)
RULES = [
    ("Adadelta", {}, [0.995848236385, -2.00241616672, 0.503311639072, -0.00233751102432]),
    ("Adadelta", {"lr": 0.01}, [0.999958482364, -2.00002416167, 0.500033116391, -2.33751102432e-05]),
    ("Adadelta", {"weight_decay": 0.1}, [0.994126863731, -1.9988321299, 0.499531776895, -0.00233631781114]),
    ("Adadelta", {"maximize": True}, [1.00415176362, -1.99758383328, 0.496688360928, 0.00233751102432]),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True},
     [1.00222301372, -1.99390482378, 0.486118794474, 0.00233631781114]),
    ("Adadelta", {"rho": 0.95, "weight_decay": 0.9},
     [0.980564126847, -1.98078074111, 0.486939030274, -0.00320918050306]),
    ("Adafactor", {}, [0.984401591805, -2.01002830727, 0.51355532491, -0.00956405553847]),
    ("Adafactor", {"weight_decay": 0.1, "lr": 0.01},
     [0.978494167904, -1.99800809076, 0.510495199612, -0.009516327248]),
    ("Adafactor", {"weight_decay": 0.1, "maximize": True},
     [1.00904715862, -1.97778104121, 0.483577784244, 0.00952274368872]),
    ("Adafactor", {"beta2_decay": -1.0}, [0.984107646828, -2.0085830683, 0.513408680659, -0.00731819152507]),
    ("Adafactor", {"d": 1.5}, [0.975627787971, -2.00857028481, 0.514268631053, -0.0124944704018]),
    ("Adagrad", {"initial_accumulator_value": 0.1},
     [0.988688091355, -2.00028700242, 0.506999397548, -0.0068983295731]),
    ("Adagrad", {"weight_decay": 0.1}, [0.984008312385, -1.99343071259, 0.491138656113, -0.00699156091578]),
    ("Adagrad", {"weight_decay": 0.1, "maximize": True},
     [1.00855708749, -1.99363552045, 0.472674462634, 0.00699156091578]),
    ("Adagrad", {"lr": 0.1}, [0.875693836427, -2.00046515766, 0.494962175441, -0.0700052048447]),
    ("Adagrad", {"initial_accumulator_value": 0.1, "weight_decay": 0.1},
     [0.985039109011, -1.99368732491, 0.502198048861, -0.00688955991016]),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.5, "weight_decay": 0.1},
     [0.873966055044, -1.92142154496, 0.39158799962, -0.0684710099875]),
    ("Adam", {}, [0.997076502788, -1.99897327459, 0.499642746064, -0.0013855841065]),
    ("Adam", {"lr": 0.01}, [0.970765027882, -1.98973274595, 0.496427460643, -0.013855841065]),
    ("Adam", {"weight_decay": 0.1}, [0.996525336801, -1.99773087336, 0.497863011257, -0.0013853209495]),
    ("Adam", {"weight_decay": 0.1, "maximize": True},
     [1.00227191885, -1.99974854675, 0.497157488358, 0.0013853209495]),
    ("Adam", {"weight_decay": 0.1, "amsgrad": True},
     [0.996525336801, -1.99773087336, 0.497863011257, -0.00138530080791]),
    ("Adamax", {}, [0.99568655907, -1.99795268376, 0.499362306658, -0.0024842724743]),
    ("Adamax", {"lr": 0.1}, [0.784327953489, -1.89763418817, 0.468115332897, -0.124213623715]),
    ("Adamax", {"weight_decay": 0.1}, [0.995041823754, -1.99629216102, 0.495914183749, -0.00248348085012]),
    ("Adamax", {"maximize": True}, [1.00431344093, -2.00204731624, 0.500637693342, 0.0024842724743]),
    ("Adamax", {"weight_decay": 0.1, "maximize": True},
     [1.00347972465, -2.00022760928, 0.495132613505, 0.00248348085012]),
    ("AdamW", {}, [0.997016598952, -1.99885333561, 0.499612767178, -0.00138553196224]),
    ("AdamW", {"lr": 0.01}, [0.970174642997, -1.98853884656, 0.496129571721, -0.0138506275275]),
    ("AdamW", {"weight_decay": 0.1}, [0.996477599282, -1.99777415462, 0.499343024663, -0.00138506275275]),
    ("AdamW", {"weight_decay": 0.1, "maximize": True},
     [1.00232270068, -1.9998264453, 0.500057125317, 0.00138506275275]),
    ("AdamW", {"weight_decay": 0.1, "amsgrad": True},
     [0.996477599282, -1.99777415462, 0.499343024663, -0.00138504258671]),
    ("ASGD", {}, [0.987494060638, -2.00548798428, 0.515486943375, -0.0119999445758]),
    ("ASGD", {"lambd": 0.1}, [0.981586258858, -1.99353647167, 0.512446614691, -0.0119449858144]),
    ("ASGD", {"lr": 0.02}, [0.974988241994, -2.01097593738, 0.53097377419, -0.0239997788404]),
    ("ASGD", {"t0": 2}, [0.987494060638, -2.00548798428, 0.515486943375, -0.0119999445758]),
    ("ASGD", {"maximize": True}, [1.01249393941, -1.99448801582, 0.484507056652, 0.0119999445758]),
    ("ASGD", {"weight_decay": 0.1}, [0.981562999557, -1.99353696866, 0.512499995878, -0.0119590367064]),
    ("ASGD", {"weight_decay": 0.1, "maximize": True},
     [1.00645504291, -1.98249911628, 0.481509025357, 0.0119590367064]),
    ("Muon", {}, [0.998447335083, -1.99949572924, 0.499252536931, -0.00242529614855]),
    ("Muon", {"lr": 0.01}, [0.984514692331, -1.99499474554, 0.492551516079, -0.0242093516328]),
    ("Muon", {"weight_decay": 0.2}, [0.997848094939, -1.9982967457, 0.498952977665, -0.00242481115668]),
    ("Muon", {"momentum": 0.8}, [0.998951206567, -1.99929356957, 0.499105576826, -0.00254823717722]),
    ("Muon", {"ns_steps": 6}, [0.998051013967, -1.99950255433, 0.499408307781, -0.00268497155769]),
    ("Muon", {"ns_coefficients": (3.4, -4.7, 2.0)},
     [0.998564486261, -1.99940587797, 0.499295001631, -0.00234913716265]),
    ("NAdam", {}, [0.996843495619, -2.00019984179, 0.500376046874, -0.00184255553091]),
    ("NAdam", {"lr": 0.001}, [0.998421747809, -2.00009992089, 0.500188023437, -0.000921277765454]),
    ("NAdam", {"momentum_decay": 0.006}, [0.996843282682, -2.00019933592, 0.500375440879, -0.00184251713589]),
    ("NAdam", {"weight_decay": 0.1}, [0.995893198757, -1.99830270129, 0.498300993892, -0.00184193266124]),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.006},
     [0.995893062793, -1.99830234877, 0.498300316679, -0.00184189432341]),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.006, "decoupled_weight_decay": True},
     [0.995646556254, -1.99780175429, 0.499776998382, -0.00184116200317]),
    ("NAdam", {"weight_decay": 0.1, "maximize": True},
     [1.00212280351, -1.99798297034, 0.493487535786, 0.00184193266124]),
    ("RAdam", {}, [0.998139404717, -1.99883526189, 0.499887795889, -0.00230070668836]),
    ("RAdam", {"lr": 0.002}, [0.996278809434, -1.99767052378, 0.499775591778, -0.00460141337673]),
    ("RAdam", {"eps": 1e-06}, [0.998139404807, -1.9988352618, 0.499887795741, -0.00230070664729]),
    ("RAdam", {"weight_decay": 0.1}, [0.997636738058, -1.99782840793, 0.499636477662, -0.00230014093922]),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True},
     [0.99754014547, -1.99763612338, 0.499587873724, -0.00229968679206]),
    ("RAdam", {"weight_decay": 0.1, "maximize": True},
     [1.00135719662, -2.00015813049, 0.499860970338, 0.00230014093922]),
    ("RMSprop", {}, [0.875918344852, -2.00112291956, 0.494989960548, -0.070340850271]),
    ("RMSprop", {"lr": 0.001}, [0.987591834485, -2.00011229196, 0.499498996055, -0.0070340850271]),
    ("RMSprop", {"weight_decay": 0.1}, [0.843806452874, -1.9367052458, 0.421961070421, -0.0694407176059]),
    ("RMSprop", {"maximize": True}, [1.12408165515, -1.99887708044, 0.505010039452, 0.070340850271]),
    ("RMSprop", {"weight_decay": 0.1, "centered": True},
     [0.842622959832, -1.93604355872, 0.421001354547, -0.069962031184]),
    ("RMSprop", {"maximize": True, "weight_decay": 0.1},
     [1.08254340054, -1.93533710413, 0.237899717762, 0.0694407176059]),
    ("RMSprop", {"weight_decay": 0.1, "centered": True, "momentum": 0.1},
     [0.827075252339, -1.92801665165, 0.402332071193, -0.0777188291625]),
    ("RMSprop", {"weight_decay": 0.1, "centered": True, "momentum": 0.1, "maximize": True},
     [1.09205696586, -1.93194417637, 0.217395656756, 0.0777188291625]),
    ("Rprop", {}, [0.976, -2.0005, 0.479, -0.02]),
    ("Rprop", {"lr": 0.0002}, [0.99952, -2.00001, 0.49958, -0.0004]),
    ("Rprop", {"etas": (0.5, 1.5)}, [0.97375, -2.00125, 0.4775, -0.02]),
    ("Rprop", {"step_sizes": (2e-06, 100)}, [0.976, -2.0005, 0.479, -0.02]),
    ("Rprop", {"maximize": True}, [1.024, -1.9995, 0.521, 0.02]),
    ("SGD", {}, [0.99875, -2.00055, 0.501549, -0.0012]),
    ("SGD", {"lr": 0.01}, [0.9875, -2.0055, 0.51549, -0.012]),
    ("SGD", {"weight_decay": 0.5}, [0.995756445452, -1.99455844355, 0.500051150799, -0.00119795229845]),
    ("SGD", {"momentum": 0.9}, [0.99458048, -1.999303635, 0.5010356049, -0.00416658]),
    ("SGD", {"weight_decay": 0.1, "maximize": True},
     [1.00064961006, -1.99825011002, 0.498151019588, 0.00119959009199]),
    ("SGD", {"momentum": 0.9, "dampening": 0.5}, [0.9961188425, -1.9973090225, 0.50051780245, -0.00676888]),
    ("SGD", {"momentum": 0.9, "weight_decay": 0.1},
     [0.992800437956, -1.99574049843, 0.500144420233, -0.00416384410495]),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
     [0.991673605147, -1.99551900301, 0.50137943996, -0.00494525722386]),
]
NAMES = sorted({name for name, _, _ in RULES})
ELEMENTWISE = [rule for rule in RULES if rule[0] not in ("Adafactor", "Muon")]


def label(rule):
    return f"{rule[0]}-" + "-".join(f"{key}={value}" for key, value in rule[1].items())


def parameter(array):
    return Parameter(wrap(np.array(array)))


def steps(name, options, start, gradients):
    """The parameter's array after a step with each gradient, and the optimizer."""
    param = Parameter(wrap(start))
    optimizer = getattr(pellucid.optim, name)([param], **options)
    for gradient in gradients:
        param.grad = wrap(np.asarray(gradient, start.dtype))
        optimizer.step()
    return param._array, optimizer


@pytest.mark.parametrize("rule", RULES, ids=label)
def test_values_of_the_rule(rule):
    name, options, expected = rule
    got, _ = steps(name, options, np.array(START), GRADIENTS)
    tolerance = 1e-5 if name == "Muon" else 2e-10  # Muon rounds to bfloat16 inside
    np.testing.assert_allclose(got.ravel(), expected, rtol=tolerance, atol=1e-13)


@pytest.mark.parametrize("rule", RULES, ids=label)
def test_float32_agrees_with_float64(rule):
    name, options, expected = rule
    got, _ = steps(name, options, np.array(START, np.float32), GRADIENTS)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got.ravel(), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_half_precision_agrees_within_its_rounding(name, kind):
    start = np.array(START).astype(getattr(pellucid, kind).numpy)
    exact, _ = steps(name, {}, np.array(START), GRADIENTS)
    got, optimizer = steps(name, {}, start, GRADIENTS)
    assert got.dtype == start.dtype
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=0.03, atol=0.03)
    for state in optimizer.state.values():
        for key, value in state.items():
            if value.ndim:
                assert value.dtype == getattr(pellucid, kind), key


@pytest.mark.parametrize("rule", ELEMENTWISE, ids=label)
def test_complex_numbers_are_pairs_of_real_ones(rule):
    name, options, expected = rule
    to_complex = lambda value: np.array(value)[:, 0] + 1j * np.array(value)[:, 1]  # noqa: E731
    got, _ = steps(name, options, to_complex(START), [to_complex(gradient) for gradient in GRADIENTS])
    np.testing.assert_allclose(got.view(np.float64).ravel(), expected, rtol=2e-10, atol=1e-13)


RNG = np.random.default_rng(0)
LAYOUTS = {
    "row-major": RNG.standard_normal((4, 3, 5)),
    "column-major": np.asfortranarray(RNG.standard_normal((4, 3, 5))),
    "permuted": RNG.standard_normal((5, 4, 3)).transpose(1, 2, 0),
    "with gaps": RNG.standard_normal((8, 3, 5))[::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "Muon"])
def test_memory_layout_changes_no_value(name, layout):
    start = LAYOUTS[layout].copy(order="K") if layout != "with gaps" else np.repeat(LAYOUTS[layout], 2, axis=0)[::2]
    gradients = np.random.default_rng(1).standard_normal((3, 4, 3, 5))
    expected, _ = steps(name, {}, start.copy(order="C"), gradients)
    got, optimizer = steps(name, {}, start, gradients)
    assert got is start
    np.testing.assert_allclose(got, expected, rtol=1e-14)
    if layout != "with gaps" and name != "Adafactor":
        for state in optimizer.state.values():
            for key, value in state.items():
                assert not value.ndim or value._array.strides == start.strides, key


@pytest.mark.parametrize("size", [1, 32767, 32768, 32769, 100_000])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Rprop"])
def test_large_parameters_are_moved_block_by_block(name, size):
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    one, _ = steps(name, options, np.array([0.5]), [[0.2], [-0.1]])
    many, _ = steps(name, options, np.full(size, 0.5), [np.full(size, 0.2), np.full(size, -0.1)])
    np.testing.assert_array_equal(many, np.full(size, one[0]))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Muon"])
def test_scalars_and_empty_parameters(name):
    scalar, _ = steps(name, {}, np.array(1.0), [0.5])
    vector, _ = steps(name, {}, np.array([1.0]), [[0.5]])
    assert scalar.shape == ()
    assert scalar == vector[0]
    empty, _ = steps(name, {}, np.zeros((0, 3)), [np.zeros((0, 3))])
    assert empty.shape == (0, 3)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_not_changed(name):
    param = parameter(START)
    param.grad = wrap(np.array(GRADIENTS[0]))
    options = {} if name == "Rprop" else {"weight_decay": 0.1}
    getattr(pellucid.optim, name)([param], **options).step()
    np.testing.assert_array_equal(param.grad._array, GRADIENTS[0])


@pytest.mark.parametrize("name", NAMES)
def test_a_step_counts_as_a_write(name):
    param = parameter(START)
    param.grad = wrap(np.array(GRADIENTS[0]))
    before = param._version
    getattr(pellucid.optim, name)([param]).step()
    assert param._version > before


STATE = {
    "ASGD": {"step", "eta", "mu", "ax"},
    "Adadelta": {"step", "square_avg", "acc_delta"},
    "Adafactor": {"step", "row_var", "col_var"},
    "Adagrad": {"step", "sum"},
    "Adam": {"step", "exp_avg", "exp_avg_sq"},
    "AdamW": {"step", "exp_avg", "exp_avg_sq"},
    "Adamax": {"step", "exp_avg", "exp_inf"},
    "Muon": {"momentum_buffer"},
    "NAdam": {"step", "mu_product", "exp_avg", "exp_avg_sq"},
    "RAdam": {"step", "exp_avg", "exp_avg_sq"},
    "RMSprop": {"step", "square_avg"},
    "Rprop": {"step", "prev", "step_size"},
    "SGD": set(),
}


@pytest.mark.parametrize("name", NAMES)
def test_state_has_pytorchs_names_and_types(name):
    _, optimizer = steps(name, {}, np.array(START, np.float32), GRADIENTS[:1])
    states = list(optimizer.state.values())
    assert set().union(*states) == STATE[name]
    for value in (value for state in states for value in state.values()):
        assert value.dtype is pellucid.float32


def test_options_add_state():
    sgd = steps("SGD", {"lr": 0.1, "momentum": 0.9}, np.array(START), GRADIENTS[:1])[1]
    adam = steps("Adam", {"amsgrad": True}, np.array(START), GRADIENTS[:1])[1]
    rms = steps("RMSprop", {"centered": True, "momentum": 0.1}, np.array(START), GRADIENTS[:1])[1]
    assert [set(*map(set, o.state.values())) for o in (sgd, adam, rms)] == [
        {"momentum_buffer"},
        {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
        {"step", "square_avg", "momentum_buffer", "grad_avg"},
    ]


def test_adagrad_has_its_state_before_the_first_step():
    param = parameter(START)
    state = pellucid.optim.Adagrad([param], initial_accumulator_value=0.25).state[param]
    np.testing.assert_array_equal(state["sum"]._array, np.full((2, 2), 0.25))
    assert state["step"].item() == 0


def test_adagrad_starts_complex_sums_in_both_parts():
    param = parameter([1 + 1j])
    assert pellucid.optim.Adagrad([param], initial_accumulator_value=0.5).state[param]["sum"].item() == 0.5 + 0.5j


def test_adafactor_keeps_a_vectors_variance_whole():
    _, optimizer = steps("Adafactor", {}, np.array([1.0, 2.0]), [[0.1, 0.2]])
    (state,) = optimizer.state.values()
    assert set(state) == {"step", "variance"}


def test_rprop_takes_a_nan_gradient_as_standing_still():
    got, _ = steps("Rprop", {}, np.array([1.0, 1.0]), [[np.nan, 0.5]])
    np.testing.assert_array_equal(got, [1.0, 0.99])


def test_infinite_and_nan_gradients_warn_nobody():
    got, _ = steps("Adam", {}, np.array([1.0, 1.0]), [[np.nan, np.inf]])
    assert np.isnan(got).all()
