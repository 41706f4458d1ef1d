"""Which family of `ops/` makes which names. Written by `docs/make_index.py`; a test compares.

`import pellucid` reads this instead of importing the families; each is imported when one of its names is first used. Names
stand under the places where they are found: "operators" (by formulas), "Tensor" (its methods), public modules.
"""

FAMILIES: dict[str, dict[str, str]] = {
    "activations": {
        "Tensor": "sigmoid_",
        "Tensor nn.functional operators torch": "sigmoid",
        "nn.functional": "elu elu_ gelu logsigmoid",
        "nn.functional operators": "mish silu softplus",
        "nn.functional torch": "celu celu_ selu selu_",
        "operators": """elu_backward elu_kernel gelu_backward gelu_exact gelu_tanh gelu_tanh_backward log_sigmoid
            log_sigmoid_backward mish_backward sigmoid_backward silu_backward softplus_backward""",
        "special": "expit",
    },
    "arithmetic": {
        "Tensor": """__add__ __div__ __floordiv__ __iadd__ __idiv__ __ifloordiv__ __imod__ __imul__ __isub__ __itruediv__ __mod__
            __mul__ __neg__ __radd__ __rdiv__ __rfloordiv__ __rmod__ __rmul__ __rsub__ __rtruediv__ __sub__ __truediv__ add_
            addcdiv_ addcmul_ div_ divide_ floor_divide_ fmod_ lerp_ mul_ multiply_ neg_ negative_ remainder_ sub_ subtract_
            true_divide_""",
        "Tensor operators torch": "add addcdiv addcmul floor_divide fmod lerp mul neg remainder sub true_divide",
        "Tensor torch": "div divide multiply negative subtract",
        "operators": "div_rounded radd rmul zeros_as",
        "operators torch": "rsub",
    },
    "attention": {
        "operators": "barrier safe_softmax",
    },
    "attention_tiles": {
        "operators": "dot_product_attention dot_product_attention_backward hide_later",
    },
    "batch_places": {
        "operators": "copied_beside counted numbered",
    },
    "bitwise": {
        "Tensor": """__and__ __iand__ __ilshift__ __invert__ __ior__ __irshift__ __ixor__ __lshift__ __or__ __rand__ __rlshift__
            __ror__ __rrshift__ __rshift__ __rxor__ __xor__ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_
            bitwise_right_shift_ bitwise_xor_ gcd_ lcm_ logical_and_ logical_not_ logical_or_ logical_xor_""",
        "Tensor operators torch": """bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd lcm
            logical_and logical_not logical_or logical_xor""",
    },
    "choosing": {
        "Tensor operators torch": "where",
    },
    "comparison": {
        "Tensor": """__eq__ __ge__ __gt__ __le__ __lt__ __ne__ eq_ ge_ greater_ greater_equal_ gt_ le_ less_ less_equal_ lt_ ne_
            not_equal_""",
        "Tensor operators torch": "eq ge gt isclose isfinite isinf isnan isneginf isposinf isreal le lt ne signbit",
        "Tensor torch": "greater greater_equal less less_equal not_equal",
        "operators torch": "isin",
    },
    "complex": {
        "Tensor": "conj_physical_",
        "Tensor operators torch": "angle conj conj_physical",
        "Tensor torch": "imag real resolve_conj resolve_neg",
        "operators": "complex_of imag_copy imag_part imaginary_of real_copy real_part",
        "operators torch": "complex",
    },
    "conversion": {
        "Tensor": "copy_ fill_ zero_",
        "Tensor operators torch": "clone",
        "operators": "_to_copy copy fill_number fill_tensor",
        "operators torch": "zero",
        "torch": "fill",
    },
    "convolution": {
        "operators": "_convolution _convolution_transposed _convolution_weight",
    },
    "counting": {
        "Tensor operators torch": "bincount histc histogram unique_consecutive",
        "Tensor torch": "unique",
        "operators": "_unique2 unique_dim",
    },
    "ctc": {
        "operators": "ctc_labels ctc_loss ctc_loss_backward",
    },
    "distances": {
        "operators": "_cdist _pdist at_least euclidean_dist pair_differences pair_differences_backward",
    },
    "embedding": {
        "operators": """bag_numbers bag_sizes bag_sums embedding_dense_backward embedding_shares largest_in_bags one_hot_rows
            sum_bags""",
        "operators torch": "embedding",
    },
    "expansion": {
        "Tensor": "expand_as",
        "Tensor operators": "expand sum_to_size",
        "Tensor torch": "broadcast_to",
    },
    "extrema": {
        "Tensor": "clamp_ clamp_max_ clamp_min_ clip_ copysign_ heaviside_ nextafter_",
        "Tensor operators torch": "copysign fmax fmin heaviside logaddexp logaddexp2 maximum minimum nextafter",
        "Tensor torch": "clamp clamp_max clamp_min clip",
        "operators": "clamp_number clamp_tensor ldexp share within",
    },
    "flat": {
        "Tensor operators torch": "take",
        "operators": "coordinates",
    },
    "folding": {
        "operators": "col2im im2col",
    },
    "fourier": {
        "operators": "fft_c2c fft_c2r fft_r2c scaled_pairs",
    },
    "grid_sampling": {
        "operators": "grid_elements grid_gather grid_scatter grid_weigh grid_weights",
        "operators torch": "grid_sampler_2d grid_sampler_3d",
    },
    "histograms": {
        "operators torch": "histogramdd",
    },
    "index_writing": {
        "operators": "index_put index_zero",
    },
    "indexing": {
        "operators": """assemble basic_alias basic_backward basic_select basic_unsqueeze index index_at index_at_backward
            index_backward slice""",
    },
    "interpolation": {
        "operators": """resample upsample_bicubic2d upsample_bicubic2d_aa upsample_bilinear2d upsample_bilinear2d_aa
            upsample_lanczos2d_aa upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d
            upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d upsample_trilinear3d""",
    },
    "joining": {
        "operators": "block_diag",
        "operators torch": "cat stack",
        "torch": "concat concatenate",
    },
    "linear_factors": {
        "linalg": "lu_factor",
        "operators": "first_zero linalg_lu_packed lu_permutation",
    },
    "linear_functions": {
        "operators": "count_above linalg_matrix_exp linalg_pinv",
    },
    "linear_packed": {
        "Tensor operators torch": "geqrf ormqr",
        "operators": "linalg_ldl_factor_ex linalg_ldl_solve",
    },
    "linear_solving": {
        "Tensor linalg torch": "det slogdet",
        "Tensor torch": "inverse",
        "linalg": "LinAlgError cholesky inv solve",
        "operators": "cofactors failures linalg_cholesky linalg_det linalg_inv linalg_slogdet linalg_solve",
    },
    "linear_spectra": {
        "linalg": "eig eigh qr svd",
        "operators": "linalg_eig linalg_eigh linalg_qr linalg_svd",
    },
    "losses": {
        "operators": """binary_cross_entropy binary_cross_entropy_with_logits huber_loss mse_loss smooth_l1_loss
            soft_margin_loss""",
    },
    "losses_classes": {
        "operators": "cross_entropy cross_entropy_backward cross_entropy_factors label_pairs nll_loss nll_loss_backward",
    },
    "masking": {
        "Tensor": "masked_fill_ masked_scatter_",
        "Tensor operators torch": "masked_fill masked_scatter masked_select",
        "operators": "masked_fill_tensor masked_place masked_scatter_backward masked_select_backward",
    },
    "normalisation": {
        "operators": """normalised normalised_backward normalised_batch normalised_fixed normalised_gradients normalised_groups
            normalised_squares normalised_unit""",
    },
    "norms": {
        "operators": "linalg_cross vector_norm",
    },
    "padding": {
        "operators": """circular_pad1d circular_pad2d circular_pad3d reflect_pad1d reflect_pad2d reflect_pad3d repeated_padding
            repeated_padding_backward replicate_pad1d replicate_pad2d replicate_pad3d""",
        "operators torch": "constant_pad_nd",
    },
    "parts": {
        "Tensor operators": "unfold",
        "Tensor operators torch": "as_strided diagonal narrow select",
        "operators": "diagonal_backward restride unfold_backward",
    },
    "pointwise": {
        "Tensor": """__abs__ abs_ absolute_ ceil_ deg2rad_ exp2_ exp_ expm1_ fix_ floor_ frac_ log10_ log1p_ log2_ log_
            nan_to_num_ rad2deg_ reciprocal_ round_ rsqrt_ sgn_ sign_ sqrt_ trunc_""",
        "Tensor operators special torch": "exp exp2 expm1 log1p round",
        "Tensor operators torch": """abs ceil deg2rad floor frac frexp log log10 log2 nan_to_num rad2deg reciprocal rsqrt sgn sign
            sqrt trunc""",
        "Tensor torch": "absolute fix",
        "operators": "times_power_of_two",
    },
    "polynomials": {
        "operators special": """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
            hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t
            shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w""",
    },
    "pooling": {
        "operators": "_avg_pool _avg_pool_backward _max_pool _max_pool_backward _max_pool_picked max_pool_indices",
    },
    "pooling_adaptive": {
        "operators": """_adaptive_avg_pool _adaptive_avg_pool_backward _image_gather _image_scatter adaptive_max_indices
            fractional_indices""",
    },
    "powers": {
        "Tensor": "__ipow__ __pow__ __rpow__ pow_ square_",
        "Tensor torch": "pow square",
        "operators": "pow_less_one pow_scalar pow_tensor pow_vanishes",
    },
    "products": {
        "Tensor": "__matmul__ __rmatmul__",
        "Tensor operators torch": "bmm dot matmul mm mv",
        "nn.functional operators": "linear",
        "operators": "gram",
    },
    "products_added": {
        "Tensor": "addbmm_ addmm_ addmv_ addr_ baddbmm_",
        "Tensor operators torch": "addbmm addmm addmv addr baddbmm",
    },
    "random_gammas": {
        "operators torch": "_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial",
    },
    "randoms": {
        "Tensor operators torch": "bernoulli multinomial",
        "operators": "normal",
        "operators torch": "poisson",
    },
    "rectifiers": {
        "Tensor nn.functional": "relu_",
        "Tensor nn.functional operators torch": "hardshrink relu",
        "nn.functional": "hardsigmoid hardswish hardtanh hardtanh_ leaky_relu_ relu6",
        "nn.functional operators": "leaky_relu softshrink",
        "nn.functional torch": "threshold threshold_",
        "operators": """hardsigmoid_kernel hardswish_backward hardswish_kernel hardtanh_kernel pass_above pass_inside pass_outside
            prelu_kernel rrelu_kernel slope_below threshold_kernel""",
    },
    "recurrent": {
        "operators": "recurrent_layer",
    },
    "reductions": {
        "Tensor operators special torch": "logsumexp",
        "Tensor operators torch": "count_nonzero",
        "Tensor torch": "all any mean prod sum",
        "operators": """all_dim any_dim expand_all expand_reduced fill_diagonal_of mean_all mean_dim nan_as_zero prod_all prod_dim
            prod_others sum_all sum_dim sum_off_diagonal""",
    },
    "scans": {
        "Tensor": "cumprod_ cumsum_",
        "Tensor operators torch": "cummax cummin cumprod cumsum logcumsumexp",
        "operators": "cumprod_back scaled_sums upper_triangle",
    },
    "scatter": {
        "Tensor": "scatter_add_",
        "Tensor operators torch": "gather scatter_add",
        "operators": "corner_of gather_backward into_corner scatter_factors scatter_src scatter_value",
    },
    "scatter_reduce": {
        "Tensor": "scatter_reduce_",
        "Tensor operators torch": "scatter_reduce",
        "operators": "index_reduce refusing_zeros scatter_counts single_zeros",
    },
    "selection": {
        "Tensor operators torch": "aminmax",
        "operators": "amax amin argmax argmin gather_ties max max_all min min_all place_along spread_ties take_along",
    },
    "shaping": {
        "Tensor": "tril_ triu_",
        "Tensor operators": "repeat",
        "Tensor operators torch": "diag_embed flip roll trace tril triu",
        "operators": "repeat_backward repeated_places trace_backward",
    },
    "shuffling": {
        "nn.functional operators torch": "channel_shuffle pixel_shuffle pixel_unshuffle",
    },
    "slices": {
        "Tensor": "index_add_ index_copy_",
        "Tensor operators torch": "index_add index_copy index_select",
        "operators": "comes_last index_fill_number index_select_backward kept_slices reshape_to",
    },
    "softmax": {
        "operators": "log_softmax log_softmax_backward softmax softmax_backward",
    },
    "sorting": {
        "Tensor operators torch": "kthvalue median mode nanmedian sort topk",
        "Tensor torch": "argsort msort",
        "operators": "median_all nanmedian_all",
        "operators torch": "searchsorted",
        "torch": "bucketize",
    },
    "special": {
        "Tensor": "digamma_ erf_ erfc_ erfinv_ i0_ igamma_ igammac_ lgamma_ logit_ polygamma_ xlogy_",
        "Tensor operators special torch": "digamma erf erfc erfinv i0 logit xlogy",
        "Tensor operators torch": "igamma igammac lgamma",
        "Tensor special torch": "polygamma",
        "operators": "polygamma_of",
        "operators special": """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx i0e i1 i1e log_ndtr modified_bessel_i0
            modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri scaled_modified_bessel_k0
            scaled_modified_bessel_k1 spherical_bessel_j0 xlog1py zeta""",
        "special": "gammainc gammaincc gammaln psi",
    },
    "splitting": {
        "operators": "split split_with_sizes unbind unsafe_split unsafe_split_with_sizes",
    },
    "statistics": {
        "Tensor operators torch": "std var",
        "operators torch": "std_mean var_mean",
    },
    "trigonometry": {
        "Tensor": """acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan2_ arctan_ arctanh_ asin_ asinh_ atan2_ atan_ atanh_
            cos_ cosh_ hypot_ sin_ sinc_ sinh_ tan_ tanh_""",
        "Tensor nn.functional operators torch": "tanh",
        "Tensor operators special torch": "sinc",
        "Tensor operators torch": "acos acosh asin asinh atan atan2 atanh cos cosh hypot sin sinh tan",
        "Tensor torch": "arccos arccosh arcsin arcsinh arctan arctan2 arctanh",
        "operators": "tanh_backward tanh_curvature",
    },
    "views": {
        "Tensor operators": "view",
        "Tensor operators torch": "permute reshape squeeze t transpose unsqueeze",
        "operators": "alias reshape_copy squeeze_one squeeze_some view_dtype",
        "operators torch": "view_as_complex view_as_real",
    },
}
