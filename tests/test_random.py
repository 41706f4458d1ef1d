"""Random numbers at array level: PyTorch 2.13's CPU numbers for the same seeds, its states, its errors.

The expected numbers were printed by PyTorch. Each case draws 1, 15, 16, 17 and 1003 numbers one after another,
then an integer that shows where the stream stands.
"""

import copy
import pickle
import subprocess
import sys
import threading
import zlib

import ml_dtypes
import numpy as np
import pytest

from pellucid.core import random

SIZES = (1, 15, 16, 17, 1003)
bfloat16 = ml_dtypes.bfloat16
WEIGHTS = np.array([0, 1, 2.5, 0.25, 4, 1, 0.5], np.float32)

DRAWS = {
    "uniform float32": lambda n: random.uniform((n,)),
    "uniform float64": lambda n: random.uniform((n,), np.float64),
    "uniform float16": lambda n: random.uniform((n,), np.float16),
    "uniform bfloat16": lambda n: random.uniform((n,), bfloat16),
    "uniform complex64": lambda n: random.uniform((n,), np.complex64),
    "range float32": lambda n: random.uniform((n,), np.float32, -0.3, 0.7),
    "range float64": lambda n: random.uniform((n,), np.float64, 1.1, 3.7),
    "range float16": lambda n: random.uniform((n,), np.float16, -1.3, 2.7),
    "integers": lambda n: random.integers((n,), -5, 7),
    "integers one word": lambda n: random.integers((n,), 0, 2**28 - 1),
    "integers two words": lambda n: random.integers((n,), 0, 2**28),
    "integers wide": lambda n: random.integers((n,), -(2**40), 2**40),
    "integers uint8": lambda n: random.integers((n,), 0, 256, np.uint8),
    "integers float16": lambda n: random.integers((n,), -3000, 60000, np.float16),
    "integers bfloat16": lambda n: random.integers((n,), 3, 301, bfloat16),
    "integers upwards": lambda n: random.integers((n,), 17, None, np.int32),
    "integers all": lambda n: random.integers((n,), -(2**63), None),
    "whole int64": lambda n: random.whole_range((n,)),
    "whole int8": lambda n: random.whole_range((n,), np.int8),
    "whole bool": lambda n: random.whole_range((n,), np.bool_),
    "whole float32": lambda n: random.whole_range((n,), np.float32),
    "whole float64": lambda n: random.whole_range((n,), np.float64),
    "whole float16": lambda n: random.whole_range((n,), np.float16),
    "permutation": lambda n: random.permutation(n),
    "permutation float32": lambda n: random.permutation(n, np.float32),
    "bernoulli number": lambda n: random.bernoulli(0.37, (n,)),
    "bernoulli float32": lambda n: random.bernoulli(np.arange(n, dtype=np.float32) / np.float32(n)),
    "bernoulli float64": lambda n: random.bernoulli(np.full(n, 0.25)),
    "bernoulli bool": lambda n: random.bernoulli(0.5, (n,), np.bool_),
    "dropout": lambda n: random.dropout_mask((n,), np.float32, 0.4),
    "dropout float16": lambda n: random.dropout_mask((n,), np.float16, 0.3),
    "geometric": lambda n: random.geometric((n,), np.int64, 0.3),
    "poisson small": lambda n: random.poisson(np.full(n, 3.25, np.float32)),
    "poisson large": lambda n: random.poisson(np.full(n, 33.5, np.float32)),
    "poisson mixed": lambda n: random.poisson((np.arange(n) % 25).astype(np.float64)),
    "multinomial replacement": lambda n: random.multinomial(WEIGHTS, n, True),
    "normal float32": lambda n: random.normal((n,)),
    "normal float64": lambda n: random.normal((n,), np.float64),
    "normal float16": lambda n: random.normal((n,), np.float16),
    "normal bfloat16": lambda n: random.normal((n,), bfloat16),
    "normal shifted": lambda n: random.normal((n,), np.float32, 2.3, 0.7),
    "normal complex64": lambda n: random.normal((n,), np.complex64),
    "normal strided": lambda n: random.normal((n,), contiguous=False),
    "log_normal": lambda n: random.log_normal((n,), np.float32, 0.3, 1.2),
    "exponential": lambda n: random.exponential((n,), np.float32, 2.3),
    "exponential float64": lambda n: random.exponential((n,), np.float64),
    "cauchy": lambda n: random.cauchy((n,), np.float32, 0.3, 1.2),
    "truncated inside": lambda n: random.truncated_normal((n,)),
    "truncated tail": lambda n: random.truncated_normal((n,), np.float32, 0.0, 1.0, 1.5, 3.0),
}

# name, CRC-32 of the bytes of the five draws, first three numbers of the last draw, an integer drawn after it
EXACT = [
    ("uniform float32", 0xb33ef41e, [0.808281660079956, 0.7528038620948792, 0.8988310694694519], 21643249),
    ("uniform float64", 0x49772698, [0.07606773363629105, 0.1595640568480271, 0.5327018282625534], 135706303),
    ("uniform float16", 0xe9662197, [0.80810546875, 0.7529296875, 0.89892578125], 21643249),
    ("uniform bfloat16", 0x68a4a118, [0.80859375, 0.75390625, 0.8984375], 21643249),
    ("uniform complex64",
     0x25a5bb0f, [(0.7595084309577942+0.531088650226593j), (0.644945502281189+0.7224201560020447j),
     (0.4415876865386963+0.3633844256401062j)], 135706303),
    ("range float32", 0x7cf99838, [0.5082816481590271, 0.4528038501739502, 0.598831057548523], 21643249),
    ("range float64", 0x5eba3ef5, [1.2977761074543568, 1.5148665478048706, 2.485024753482639], 135706303),
    ("range float16", 0xb1c00f3e, [1.93359375, 1.7109375, 2.294921875], 21643249),
    ("integers", 0x694ade29, [-5, 0, -2], 21643249),
    ("integers one word", 0xbdde027f, [80669586, 113293259, 65411538], 21643249),
    ("integers two words", 0x2c75f3ab, [159905133, 79229063, 73205443], 135706303),
    ("integers wide", 0xa410d713, [161489614189, 163556421767, 982278538947], 135706303),
    ("integers uint8", 0xb98c6875, [140, 193, 203], 21643249),
    ("integers float16", 0x5ce9061a, [21808.0, 39552.0, 4884.0], 21643249),
    ("integers bfloat16", 0x7ee6ee46, [7.0, 270.0, 190.0], 21643249),
    ("integers upwards", 0x2ab32383, [861584059, 1655082011, 1499504102], 135706303),
    ("integers all", 0x86fd5748, [-9168643684092611219, 2064085854589612167, -7245997248555972925], 135706303),
    ("whole int64", 0x62377f04, [54728352762164589, 2064085854589612167, 1977374788298802883], 135706303),
    ("whole int8", 0x9df8a07b, [12, 65, 75], 21643249),
    ("whole bool", 0xbd8a87dc, [False, True, True], 21643249),
    ("whole float32", 0x63f91694, [13560616.0, 12629787.0, 15079768.0], 21643249),
    ("whole float64", 0xe3274675, [685157233717607.0, 1437225253924770.0, 4798151510524392.0], 135706303),
    ("whole float16", 0x2c700b09, [834.0, 581.0, 1752.0], 21643249),
    ("permutation", 0xadb070cc, [877, 194, 581], 242540832),
    ("permutation float32", 0x0118e3a3, [877.0, 194.0, 581.0], 242540832),
    ("bernoulli number", 0xd1328458, [1.0, 1.0, 0.0], 135706303),
    ("bernoulli float32", 0x9085a50e, [0.0, 0.0, 0.0], 21643249),
    ("bernoulli float64", 0x9819304a, [1.0, 1.0, 0.0], 135706303),
    ("bernoulli bool", 0x0e6a344c, [True, True, False], 135706303),
    ("dropout", 0xe74178bc, [1.6666666269302368, 1.6666666269302368, 1.6666666269302368], 135706303),
    ("dropout float16", 0xc7476b2c, [1.4287109375, 1.4287109375, 1.4287109375], 135706303),
    ("geometric", 0x68041eae, [8, 6, 2], 135706303),
    ("poisson small", 0x3ce7e960, [2.0, 1.0, 8.0], 13352497),
    ("poisson large", 0xc179c5f8, [31.0, 26.0, 32.0], 150517752),
    ("poisson mixed", 0x6c764117, [0.0, 2.0, 1.0], 27711441),
    ("multinomial replacement", 0x37b25fc7, [1, 6, 4], 71343908),
]

# name, the ends of the five draws, an integer drawn after them
CLOSE = [
    ("normal float32", [0.04613046, -0.1319204, 0.8848398, 0.1601268, 0.13649, -2.12162, -2.227757], 26284532),
    ("normal float64", [0.04613046, -0.1319204, 0.8848398, 0.9106621, -0.2758196, 0.8049603, 0.5916611], 100964419),
    ("normal float16", [0.04614258, -0.131958, 0.8847656, 0.1601562, 0.7539062, 1.1875, 0.8515625], 192281026),
    ("normal bfloat16", [0.04614258, -0.1318359, 0.8867188, 0.1601562, 0.7539062, 1.1875, 0.8515625], 192281026),
    ("normal shifted", [2.332291, 2.207656, 2.919388, 2.412089, 2.395543, 0.814866, 0.7405698], 26284532),
    ("normal complex64",
     [(0.0326192+0.2845418j), (0.8621333+0.1132267j), (-0.4848648-0.0350987j), (0.096513-1.6497976j),
     (-1.8947952-0.0916936j), (0.4146672-0.9152495j), (-0.0457925+1.0673088j)], 243125550),
    ("normal strided", [0.04613046, -0.1319204, 0.8848398, -0.1383191, 0.2110888, -0.5239429, 1.102022], 135706303),
    ("log_normal", [1.426689, 1.152226, 3.903243, 1.143412, 1.738994, 0.7198362, 5.065369], 135706303),
    ("exponential", [0.1146738, 0.1389532, 0.1739879, 0.144743, 0.07630922, 0.1680848, 0.323689], 135706303),
    ("exponential float64", [0.2637496, 0.3195923, 0.4001722, 0.3329089, 0.1755112, 0.386595, 0.7444848], 135706303),
    ("cauchy", [-1.045424, -0.7343558, -0.4107196, -0.6727952, -1.86709, -0.4581956, 0.3945219], 135706303),
    ("truncated inside", [0.04613046, -0.1319204, 0.8848398, 0.7540221, 1.468903, 0.03948138, 0.06351406], 261153335),
    ("truncated tail", [1.543469, 2.981116, 1.925512, 2.898702, 1.705943, 1.727293, 1.788683], 235043839),
]


@pytest.fixture(autouse=True)
def seeded():
    random.manual_seed(1234)


def where_the_stream_stands():
    return int(random.integers((1,), 0, 2**28 - 1)[0])


@pytest.mark.filterwarnings("ignore:.*out of bounds:UserWarning")
@pytest.mark.parametrize(("name", "checksum", "head", "after"), EXACT, ids=[case[0] for case in EXACT])
def test_numbers_are_the_same_bit_for_bit(name, checksum, head, after):
    draws = [DRAWS[name](n) for n in SIZES]
    assert [draw.shape for draw in draws] == [(n,) for n in SIZES]
    assert draws[-1][:3].tolist() == head
    assert zlib.crc32(b"".join(draw.tobytes() for draw in draws)) == checksum
    assert where_the_stream_stands() == after


@pytest.mark.parametrize(("name", "ends", "after"), CLOSE, ids=[case[0] for case in CLOSE])
def test_numbers_are_the_same_to_the_last_digits(name, ends, after):
    draws = [DRAWS[name](n) for n in SIZES]
    found = np.concatenate([draws[0], draws[1][-2:], draws[2][-1:], draws[3][-1:], draws[4][-2:]])
    rtol = {np.dtype(np.float16): 1e-3, np.dtype(bfloat16): 8e-3}.get(found.dtype, 2e-6)
    np.testing.assert_allclose(found.astype(np.complex128), ends, rtol=rtol, atol=1e-7)
    assert where_the_stream_stands() == after


def test_different_draws_follow_one_another():
    found = [
        random.normal((5,))[-1], random.uniform((1,))[0], random.normal((4,))[0], random.integers((2,), 0, 100),
        random.normal((40,))[-1], random.log_normal((3,))[-1], random.permutation(5), random.normal((1,))[0],
        random.uniform((1,), np.float64)[0],
    ]
    assert found[1] == np.float32(0.7748504877090454)
    assert found[3].tolist() == [32, 80]
    assert found[6].tolist() == [2, 1, 0, 3, 4]
    assert found[8] == 0.06003715673640453
    normals = [found[0], found[2], found[4], found[5], found[7]]
    expected = [-0.612273097038269, 0.5036107301712036, -0.9428192377090454, 23.8769474029541, -0.33822569251060486]
    np.testing.assert_allclose(normals, expected, rtol=2e-6)


def test_the_second_normal_of_a_pair_waits_until_a_seed_clears_it():
    random.normal((1,))
    waiting = random.normal((1,))
    random.manual_seed(1234)
    assert random.normal((1,)) != waiting
    random.manual_seed(1234)
    np.testing.assert_array_equal(random.normal((2,))[1:], waiting)


@pytest.mark.parametrize(("n", "checksum"), [(300, 0x9446A4B9), (5000, 0xA4FE93D4)])
def test_long_permutations(n, checksum):
    random.manual_seed(9)
    order = random.permutation(n)
    assert zlib.crc32(order.tobytes()) == checksum
    assert sorted(order) == list(range(n))


def test_multinomial_without_replacement():
    assert [random.multinomial(WEIGHTS, 3).tolist() for _ in range(4)] == [[1, 4, 2], [4, 1, 2], [2, 4, 1], [4, 2, 3]]
    # One sample is drawn the same way with and without replacement.
    assert [random.multinomial(WEIGHTS, 1, True).item() for _ in range(8)] == [4, 2, 1, 6, 4, 4, 5, 4]


def test_multinomial_rows():
    rows = np.stack([WEIGHTS, WEIGHTS[::-1]])
    assert random.multinomial(rows, 5, True).tolist() == [[2, 1, 4, 4, 3], [2, 2, 2, 2, 5]]
    assert random.multinomial(rows, 2).tolist() == [[1, 4], [4, 2]]
    assert random.multinomial(rows[:0], 2).shape == (0, 2)


def test_normal_with_arrays_of_means_and_deviations():
    random.manual_seed(3)
    means = np.array([0, 10, 20], np.float32)
    np.testing.assert_allclose(random.normal((3,), mean=means, std=0.5), [0.401638, 10.08742, 20.04449], rtol=1e-6)
    np.testing.assert_allclose(random.normal((3,), mean=1.0, std=means), [1.0, 1.461825, -26.36518], rtol=1e-6)
    np.testing.assert_allclose(random.normal((3,), mean=means, std=means), [0.0, 20.11116, -8.703587], rtol=1e-6)


def test_in_place_draws_visit_elements_by_address():
    random.manual_seed(3)
    transposed = np.empty((4, 5), np.float32).T
    random.fill(transposed, random.uniform)
    expected = [0.10556936264038086, 0.7718658447265625, 0.7994906306266785, 0.17560523748397827]
    assert transposed[1].tolist() == expected
    random.manual_seed(3)
    strided = np.empty((2, 5, 6), np.float32).transpose(1, 2, 0)[::2, 1::3]
    random.fill(strided, random.uniform)
    expected = [0.004263520240783691, 0.7718658447265625, 0.10556936264038086, 0.7436993718147278, 0.2858424782752991]
    assert strided.ravel()[:5].tolist() == expected
    random.manual_seed(3)
    plain = np.empty((2, 2), np.float32)
    random.fill(plain, random.uniform)
    random.manual_seed(3)
    np.testing.assert_array_equal(plain, random.uniform((2, 2)))


EMPTY = {
    "uniform": lambda: random.uniform((0, 3)), "normal": lambda: random.normal((0,)),
    "integers": lambda: random.integers((0,), 0, 5), "whole_range": lambda: random.whole_range((0,)),
    "permutation": lambda: random.permutation(0), "bernoulli": lambda: random.bernoulli(0.5, (0,)),
    "exponential": lambda: random.exponential((0,)), "cauchy": lambda: random.cauchy((0,)),
    "geometric": lambda: random.geometric((0,)), "log_normal": lambda: random.log_normal((0,)),
    "poisson": lambda: random.poisson(np.empty(0)), "dropout_mask": lambda: random.dropout_mask((0,)),
    "truncated_normal": lambda: random.truncated_normal((0,)),
    "dropout of nothing": lambda: random.dropout_mask((9,), p=0),
    "dropout of all": lambda: random.dropout_mask((9,), p=1),
}


@pytest.mark.parametrize("draw", EMPTY.values(), ids=EMPTY.keys())
def test_nothing_drawn_leaves_the_stream_alone(draw):
    before = where_the_stream_stands()
    random.manual_seed(1234)
    draw()
    assert where_the_stream_stands() == before


def test_dropout_of_all_and_of_nothing():
    assert random.dropout_mask((3,), p=1).tolist() == [0, 0, 0]
    assert random.dropout_mask((3,), np.float64, p=0).tolist() == [1, 1, 1]


def test_scalars_have_no_dimension():
    assert random.uniform(()).shape == random.normal(()).shape == random.integers((), 0, 9).shape == ()
    assert random.bernoulli(np.array(0.5, np.float32)).shape == ()


def test_normals_too_large_for_their_type_are_infinite_without_a_warning():
    assert np.isinf(random.normal((100,), std=1e39)).any()
    assert np.isinf(random.normal((100,), mean=1.0, std=1e39)).any()
    assert np.isinf(random.normal((3,), np.float16, std=1e9)).all()


def test_uniform_never_reaches_its_upper_end():
    # Rounding to bfloat16 would lift numbers just below 1 to 1.
    assert random.uniform((20000,), bfloat16).max() < 1
    assert random.uniform((20000,), np.float16, 1000, 1001).max() < 1001


@pytest.mark.parametrize("seed", [0, 5, -1, 2**64 - 1, -(2**63)])
def test_seeds_are_taken_modulo_2_to_the_64(seed):
    generator = random.Generator()
    assert generator.manual_seed(seed) is generator
    assert generator.initial_seed() == seed % 2**64


def test_default_generator():
    assert random.manual_seed("7") is random.default_generator
    assert random.initial_seed() == random.default_generator.initial_seed() == 7
    assert random.seed() == random.initial_seed() != 7
    assert random.Generator().initial_seed() == 67280421310721


def test_generators_have_streams_of_their_own():
    generator = random.Generator().manual_seed(1234)
    mine = random.uniform((4,), generator=generator)
    np.testing.assert_array_equal(mine, random.uniform((4,)))


def test_state_has_the_bytes_of_pytorch():
    generator = random.Generator().manual_seed(5)
    assert zlib.crc32(np.asarray(random.Generator().get_state()).tobytes()) == 0xD096FA09
    random.normal((3,), generator=generator)
    random.uniform((5,), generator=generator)
    state = generator.get_state()
    assert np.asarray(state).dtype == np.uint8
    assert zlib.crc32(np.asarray(state).tobytes()) == 0xD5C828AE
    expected = np.float32(0.6593389511108398)
    assert random.uniform((1,), generator=generator)[0] == expected
    other = random.Generator()
    other.set_state(state)
    assert random.uniform((1,), generator=other)[0] == expected
    assert other.initial_seed() == 5


@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 625, 1300])
def test_a_state_continues_where_it_was_taken(drawn):
    random.uniform((drawn,))
    random.normal((1,))
    state = random.get_rng_state()
    expected = [random.normal((3,)), random.uniform((700,))]
    random.set_rng_state(state)
    np.testing.assert_array_equal(random.get_rng_state(), state)
    np.testing.assert_array_equal(random.normal((3,)), expected[0])
    np.testing.assert_array_equal(random.uniform((700,)), expected[1])


@pytest.mark.parametrize("duplicate", [
    lambda g: g.clone_state(), copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)),
], ids=["clone_state", "deepcopy", "pickle"])
def test_copies_of_a_generator(duplicate):
    generator = random.Generator().manual_seed(3)
    random.normal((3,), generator=generator)
    twin = duplicate(generator)
    np.testing.assert_array_equal(random.normal((9,), generator=twin), random.normal((9,), generator=generator))


def test_states_can_be_wrapped(monkeypatch):
    class Wrapped:
        def __init__(self, array):
            self._array = array

    monkeypatch.setattr(random.Generator, "wrap_state", staticmethod(Wrapped))
    state = random.get_rng_state()
    assert isinstance(state, Wrapped)
    before = where_the_stream_stands()
    random.set_rng_state(state)
    assert where_the_stream_stands() == before


def test_threads_share_a_generator():
    found = []
    threads = [threading.Thread(target=lambda: found.append(random.uniform((1000,), np.float64))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    random.manual_seed(1234)
    whole = random.uniform((8, 1000), np.float64)
    assert sorted(row.tobytes() for row in found) == sorted(row.tobytes() for row in whole)


def test_importing_does_not_import_numpy_random():
    program = "import sys, pellucid.core.random as r; r.manual_seed(3); print('numpy.random' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


INVALID = [
    (lambda: random.uniform((2,), low=1, high=0), RuntimeError, r"\[from, to\) range, but found from=1 > to=0"),
    (lambda: random.uniform((2,), high=float("inf")), RuntimeError, "to is out of bounds for float"),
    (lambda: random.uniform((2,), low=float("nan")), RuntimeError, "from is out of bounds for float"),
    (lambda: random.uniform((2,), np.float16, 0, 70000), RuntimeError, "to is out of bounds for c10::Half"),
    (lambda: random.uniform((2,), low=-3e38, high=3e38), RuntimeError, "which result in to-from to exceed the limit"),
    (lambda: random.uniform((2,), np.int64), NotImplementedError,
     "\"check_uniform_bounds\" not implemented for 'Long'"),
    (lambda: random.uniform((-1,)), RuntimeError, r"Trying to create tensor with negative dimension -1: \[-1\]"),
    (lambda: random.normal((2,), std=-1), RuntimeError, r"normal expects std >= 0.0, but found std -1"),
    (lambda: random.normal((2,), std=float("nan")), RuntimeError, r"normal expects std >= 0.0, but found std nan"),
    (lambda: random.normal((2,), std=np.array([1.0, -1])), RuntimeError, r"normal expects all elements of std >= 0.0"),
    (lambda: random.normal((2,), std=np.array([1j])), RuntimeError, "standard deviation to be non-complex"),
    (lambda: random.normal((2,), np.int32), NotImplementedError, "\"normal_kernel_cpu\" not implemented for 'Int'"),
    (lambda: random.log_normal((2,), std=0), RuntimeError, r"log_normal_ expects std > 0.0, but found std=0"),
    (lambda: random.log_normal((2,), np.bool_), NotImplementedError, "\"log_normal_cpu\" not implemented for 'Bool'"),
    (lambda: random.exponential((2,), rate=0), RuntimeError, r"exponential_ expects lambda > 0.0, but found lambda=0"),
    (lambda: random.exponential((2,), np.int8), RuntimeError, "must be a floating point but you specified Char"),
    (lambda: random.cauchy((2,), sigma=-1), RuntimeError, r"cauchy_ expects sigma > 0.0, but found sigma=-1"),
    (lambda: random.cauchy((2,), np.int16), RuntimeError, "must be a floating point but you specified short int"),
    (lambda: random.geometric((2,), p=1.5), RuntimeError, r"geometric_ expects p to be in \(0, 1\), but got p=1.5"),
    (lambda: random.geometric((2,), np.bool_), NotImplementedError, "\"geometric_cpu\" not implemented for 'Bool'"),
    (lambda: random.bernoulli(1.5, (2,)), RuntimeError, r"bernoulli_ expects p to be in \[0, 1\], but got p=1.5"),
    (lambda: random.bernoulli(np.array([0.5, 1.5])), RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true"),
    (lambda: random.bernoulli(np.array([1])), NotImplementedError,
     "\"bernoulli_tensor_cpu_p_\" not implemented for 'Long'"),
    (lambda: random.bernoulli(0.5, (2,), np.complex64), NotImplementedError,
     "\"bernoulli_scalar_cpu_\" not implemented for 'ComplexFloat'"),
    (lambda: random.dropout_mask((2,), p=1.5), ValueError, r"probability has to be between 0 and 1, but got 1.5"),
    (lambda: random.integers((2,), 5, 5), RuntimeError, "to be less than 'to', but got from=5 >= to=5"),
    (lambda: random.integers((2,), 0, 300, np.uint8), RuntimeError, "to - 1 is out of bounds for unsigned char"),
    (lambda: random.integers((2,), -5, 3, np.uint8), RuntimeError, "from is out of bounds for unsigned char"),
    (lambda: random.integers((2,), 0, 3, np.bool_), RuntimeError, "to - 1 is out of bounds for bool"),
    (lambda: random.integers((2,), 0, 70000, np.float16), RuntimeError, "to - 1 is out of bounds for c10::Half"),
    (lambda: random.integers((2,), 1001, 1003, bfloat16), RuntimeError, "'from' casted to dtype to be less than 'to'"),
    (lambda: random.integers((2,), 3000, None, np.float16), RuntimeError, "from=3000 > to_inc=2048"),
    (lambda: random.integers((2,), 0, 5, np.complex64), RuntimeError, "check_random_bounds handles only integral"),
    (lambda: random.integers((2,), -(2**63), None, np.uint8), RuntimeError,
     "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16"),
    (lambda: random.whole_range((2,), np.complex64), NotImplementedError, "\"random_kernel_cpu\" not implemented"),
    (lambda: random.permutation(-1), RuntimeError, r"Trying to create tensor with negative dimension -1: \[-1\]"),
    (lambda: random.permutation(300, np.uint8), RuntimeError, "cannot be converted to type uint8_t without overflow"),
    (lambda: random.permutation(3000, np.float16), RuntimeError, "n cannot be greater than 2049 for Half type"),
    (lambda: random.permutation(3, np.bool_), NotImplementedError, "\"randperm\" not implemented for 'Bool'"),
    (lambda: random.poisson(np.array([-1.0])), RuntimeError, "expected rate to be non-negative"),
    (lambda: random.poisson(np.array([1])), NotImplementedError, "\"poisson_cpu\" not implemented for 'Long'"),
    (lambda: random.multinomial(np.ones(3), 4), RuntimeError, "samples without replacement"),
    (lambda: random.multinomial(np.ones(3), 0), RuntimeError, "cannot sample n_sample <= 0 samples"),
    (lambda: random.multinomial(np.ones((2, 2, 2)), 1), RuntimeError, "prob_dist must be 1 or 2 dim"),
    (lambda: random.multinomial(np.ones(3, np.int64), 1), RuntimeError, "floating-point dtypes for input, got: Long"),
    (lambda: random.multinomial(np.array([-1.0, 2]), 1, True), RuntimeError, "either `inf`, `nan` or element < 0"),
    (lambda: random.multinomial(np.zeros(2), 1), RuntimeError, r"sum of probabilities <= 0"),
    (lambda: random.multinomial(np.ones(2**24 + 1, np.float16), 1), RuntimeError, r"cannot exceed 2\^24"),
    (lambda: random.uniform((2,), generator=5), TypeError, "generator must be a Generator, but got int"),
    (lambda: random.manual_seed(2**64), ValueError, "Overflow when unpacking long long"),
    (lambda: random.manual_seed(-(2**63) - 1), ValueError, "Overflow when unpacking long long"),
    (lambda: random.Generator().manual_seed(1.0), RuntimeError, "manual_seed expected a long, but got float"),
    (lambda: random.Generator("cuda"), RuntimeError, "cuda"),
    (lambda: random.set_rng_state(None), TypeError, "expected a torch.ByteTensor, but got NoneType"),
    (lambda: random.set_rng_state(np.zeros(5056)), TypeError, "RNG state must be a torch.ByteTensor"),
    (lambda: random.set_rng_state(np.zeros(5, np.uint8)), RuntimeError, "of size 5056 but found .* to be 5"),
    (lambda: random.set_rng_state(np.zeros(5056, np.uint8)), RuntimeError, "Invalid mt19937 state"),
]


@pytest.mark.parametrize(("call", "kind", "message"), INVALID)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_integers_that_a_float_cannot_tell_apart_give_a_warning():
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^8\), 2\^8\]"):
        random.integers((3,), 0, 300, bfloat16)
