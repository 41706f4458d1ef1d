"""Which family of operators makes which names. Written by `docs/make_index.py`; a test compares.

`import pellucid` reads this instead of importing the families; each is imported when one of its names is first used. Names
stand under the places where they are found: "operators" (by formulas), "Tensor" (its methods), public modules.
"""

FAMILIES: dict[str, dict[str, str]] = {
    "activations": {
        "Tensor": "sigmoid_",
        "Tensor nn.functional operators torch": "sigmoid",
        "nn.functional": "elu elu_ gelu glu logsigmoid softsign tanhshrink",
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
        "nn.functional": "multi_head_attention_forward scaled_dot_product_attention",
        "operators": "barrier safe_softmax",
    },
    "attention_tiles": {
        "operators": "dot_product_attention dot_product_attention_backward hide_later",
    },
    "batch_places": {
        "operators": "copied_beside counted numbered",
    },
    "bilinear": {
        "nn.functional torch": "bilinear",
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
        "torch": "safe_where",
    },
    "comparison": {
        "Tensor": """__eq__ __ge__ __gt__ __le__ __lt__ __ne__ eq_ ge_ greater_ greater_equal_ gt_ le_ less_ less_equal_ lt_ ne_
            not_equal_""",
        "Tensor operators torch": "eq ge gt isclose isfinite isinf isnan isneginf isposinf isreal le lt ne signbit",
        "Tensor torch": "allclose equal greater greater_equal is_nonzero less less_equal not_equal",
        "operators torch": "isin",
    },
    "complex": {
        "Tensor": "conj_physical_",
        "Tensor operators torch": "angle conj conj_physical",
        "Tensor torch": "imag real resolve_conj resolve_neg",
        "operators": "complex_of imag_copy imag_part imaginary_of real_copy real_part",
    },
    "construction": {
        "Tensor": "__array__ __dlpack__ __dlpack_device__ new_tensor numpy",
        "torch": """as_tensor asarray from_dlpack from_numpy frombuffer is_complex is_conj is_floating_point is_inference is_neg
            is_same_size is_signed is_storage is_tensor numel tensor""",
    },
    "contractions": {
        "Tensor torch": "ger inner kron outer vdot",
        "linalg": "matmul multi_dot vecdot",
        "torch": "chain_matmul tensordot",
    },
    "conversion": {
        "Tensor": """bfloat16 bool byte cdouble cfloat char contiguous copy_ cpu cuda double fill_ float half int is_contiguous
            is_pinned is_shared long pin_memory share_memory_ short to type_as zero_""",
        "Tensor operators torch": "clone",
        "operators": "_to_copy copy fill_number fill_tensor",
        "operators torch": "zero",
        "torch": "channels_last channels_last_3d contiguous_format fill memory_format preserve_format",
    },
    "convolution": {
        "nn.functional torch": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d",
        "operators": "_convolution _convolution_transposed _convolution_weight",
        "torch": "convolution",
    },
    "copies": {
        "torch": """alias_copy as_strided_copy diagonal_copy expand_copy permute_copy select_copy split_copy split_with_sizes_copy
            squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy view_as_complex_copy view_as_real_copy
            view_copy""",
    },
    "counting": {
        "Tensor operators torch": "bincount histc histogram unique_consecutive",
        "Tensor torch": "unique",
        "operators": "_unique2 unique_dim",
    },
    "ctc": {
        "nn.functional operators": "ctc_loss",
        "operators": "ctc_labels ctc_loss_backward",
    },
    "distances": {
        "nn.functional": "normalize",
        "nn.functional torch": "cosine_similarity pairwise_distance pdist",
        "operators": "_cdist _pdist at_least euclidean_dist pair_differences pair_differences_backward",
        "torch": "cdist",
    },
    "dropout": {
        "nn.functional": "dropout1d dropout2d dropout3d",
        "nn.functional torch": "alpha_dropout dropout feature_alpha_dropout",
        "torch": "feature_dropout native_dropout",
    },
    "einsum": {
        "torch": "einsum",
    },
    "embedding": {
        "nn.functional": "embedding_bag one_hot",
        "nn.functional operators torch": "embedding",
        "operators": "bag_numbers embedding_dense_backward embedding_shares largest_in_bags one_hot_rows sum_bags",
        "torch": "embedding_renorm_",
    },
    "expansion": {
        "Tensor": "expand_as",
        "Tensor operators": "expand sum_to_size",
        "Tensor torch": "broadcast_to",
        "torch": "broadcast_shapes broadcast_tensors",
    },
    "extrema": {
        "Tensor": "clamp_ clamp_max_ clamp_min_ clip_ copysign_ heaviside_ ldexp_ nextafter_",
        "Tensor operators torch": "copysign fmax fmin heaviside ldexp logaddexp logaddexp2 maximum minimum nextafter",
        "Tensor torch": "clamp clamp_max clamp_min clip",
        "operators": "clamp_number clamp_tensor share within",
    },
    "factories": {
        "Tensor": "new_empty new_empty_strided new_full new_ones new_zeros",
        "operators torch": "complex",
        "torch": """arange cartesian_prod combinations empty empty_like empty_permuted empty_strided eye full full_like linspace
            logspace meshgrid ones ones_like polar range scalar_tensor tril_indices triu_indices vander zeros zeros_like""",
    },
    "flat": {
        "Tensor": "put_",
        "Tensor operators torch": "take",
        "Tensor torch": "put",
    },
    "folding": {
        "nn.functional": "fold unfold",
        "operators": "col2im im2col",
    },
    "fourier": {
        "fft": """fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2
            irfftn rfft rfft2 rfftfreq rfftn""",
        "operators": "fft_c2c fft_c2r fft_r2c scaled_pairs",
    },
    "functions_in_place": {
        "torch": """abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ clamp_
            clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ erf_ erfc_ exp2_ exp_ expm1_ fix_ floor_ frac_ gcd_ i0_
            lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_
            sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_""",
    },
    "grid_sampling": {
        "nn.functional": "affine_grid grid_sample",
        "operators": "grid_elements grid_gather grid_scatter grid_weigh grid_weights",
        "operators torch": "grid_sampler_2d grid_sampler_3d",
        "torch": "affine_grid_generator grid_sampler",
    },
    "histograms": {
        "operators torch": "histogramdd",
    },
    "index_writing": {
        "Tensor": "__setitem__ index_put_",
        "Tensor operators torch": "index_put",
        "operators": "index_zero",
    },
    "indexing": {
        "Tensor": "__contains__ __getitem__ __iter__ __reversed__",
        "operators": """assemble basic_alias basic_backward basic_select basic_unsqueeze index index_at index_at_backward
            index_backward slice""",
    },
    "interpolation": {
        "nn.functional": "interpolate upsample upsample_bilinear upsample_nearest",
        "operators": """resample upsample_bicubic2d upsample_bicubic2d_aa upsample_bilinear2d upsample_bilinear2d_aa
            upsample_lanczos2d_aa upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d
            upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d upsample_trilinear3d""",
    },
    "joining": {
        "operators torch": "block_diag cat stack",
        "torch": "column_stack concat concatenate dstack hstack row_stack vstack",
    },
    "legacy": {
        "Tensor": "apply_ dim_order is_set_to map_ new resize_ set_ type",
        "Tensor torch": "resize_as_",
        "torch": """BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
            ShortTensor detach detach_ fill_ get_device index_put_ layout zero_""",
    },
    "linear_factors": {
        "Tensor linalg torch": "lu_solve",
        "linalg": "lstsq lu lu_factor lu_factor_ex",
        "operators": "first_zero linalg_lu_packed lu_permutation",
        "torch": "lu_unpack",
    },
    "linear_functions": {
        "Tensor linalg torch": "matrix_exp matrix_power",
        "Tensor torch": "pinverse",
        "linalg": "cond diagonal matrix_norm matrix_rank norm pinv tensorinv tensorsolve vander",
        "operators": "count_above linalg_matrix_exp linalg_pinv",
    },
    "linear_packed": {
        "Tensor operators torch": "geqrf ormqr",
        "Tensor torch": "lu",
        "linalg": "ldl_factor ldl_factor_ex ldl_solve",
        "operators": "linalg_ldl_factor_ex linalg_ldl_solve",
    },
    "linear_solving": {
        "Tensor linalg torch": "cholesky det slogdet",
        "Tensor torch": "cholesky_inverse cholesky_solve inverse logdet triangular_solve",
        "linalg": "LinAlgError cholesky_ex inv inv_ex solve solve_ex solve_triangular",
        "operators": "cofactors failures linalg_cholesky linalg_det linalg_inv linalg_slogdet linalg_solve",
    },
    "linear_spectra": {
        "Tensor linalg torch": "qr svd",
        "Tensor torch": "orgqr",
        "linalg": "eig eigh eigvals eigvalsh householder_product svdvals",
        "operators": "linalg_eig linalg_eigh linalg_qr linalg_svd",
    },
    "losses": {
        "nn.functional": "gaussian_nll_loss kl_div l1_loss",
        "nn.functional operators": "binary_cross_entropy huber_loss mse_loss smooth_l1_loss",
        "nn.functional operators torch": "binary_cross_entropy_with_logits",
        "nn.functional torch": "poisson_nll_loss",
    },
    "losses_classes": {
        "nn.functional": "linear_cross_entropy multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss",
        "nn.functional operators": "cross_entropy nll_loss",
        "operators": "cross_entropy_backward cross_entropy_factors label_pairs nll_loss_backward",
    },
    "losses_pairs": {
        "nn.functional": """cosine_embedding_loss hinge_embedding_loss margin_ranking_loss triplet_margin_loss
            triplet_margin_with_distance_loss""",
        "nn.functional operators": "soft_margin_loss",
    },
    "masked": {
        "masked": """amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median norm normalize prod
            softmax softmin std sum var""",
    },
    "masking": {
        "Tensor": "masked_fill_ masked_scatter_",
        "Tensor operators torch": "masked_fill masked_scatter masked_select",
        "operators": "masked_fill_tensor masked_place masked_scatter_backward masked_select_backward",
    },
    "normalisation": {
        "nn.functional": "instance_norm local_response_norm",
        "nn.functional torch": "batch_norm group_norm layer_norm rms_norm",
        "operators": """normalised normalised_backward normalised_batch normalised_fixed normalised_gradients normalised_groups
            normalised_squares normalised_unit""",
        "torch": "native_batch_norm native_group_norm native_layer_norm",
    },
    "norms": {
        "Tensor": "renorm_",
        "Tensor linalg torch": "cross",
        "Tensor torch": "dist norm renorm",
        "linalg operators": "vector_norm",
        "operators": "linalg_cross",
    },
    "padding": {
        "nn.functional": "pad",
        "operators": """circular_pad1d circular_pad2d circular_pad3d reflect_pad1d reflect_pad2d reflect_pad3d repeated_padding
            repeated_padding_backward replicate_pad1d replicate_pad2d replicate_pad3d""",
        "operators torch": "constant_pad_nd",
    },
    "parts": {
        "Tensor": "as_strided_",
        "Tensor operators": "unfold",
        "Tensor operators torch": "as_strided diagonal narrow select",
        "Tensor torch": "as_strided_scatter diagonal_scatter narrow_copy select_scatter slice_scatter",
        "operators": "diagonal_backward restride unfold_backward",
    },
    "places": {
        "Tensor torch": "argwhere nonzero nonzero_static",
        "operators": "coordinates",
        "torch": "unravel_index",
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
        "nn.functional": """avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_pool2d_with_indices
            max_pool3d_with_indices""",
        "nn.functional torch": "avg_pool1d max_pool1d max_pool1d_with_indices max_pool2d max_pool3d",
        "operators": "_avg_pool _avg_pool_backward _max_pool _max_pool_backward _max_pool_picked max_pool_indices",
    },
    "pooling_adaptive": {
        "nn.functional": """adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d_with_indices adaptive_max_pool2d
            adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices fractional_max_pool2d
            fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices max_unpool1d max_unpool2d
            max_unpool3d""",
        "nn.functional torch": "adaptive_avg_pool1d adaptive_max_pool1d",
        "operators": """_adaptive_avg_pool _adaptive_avg_pool_backward _image_gather _image_scatter adaptive_max_indices
            fractional_indices""",
    },
    "powers": {
        "Tensor": "__ipow__ __pow__ __rpow__ float_power_ pow_ square_",
        "Tensor torch": "float_power pow square",
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
        "Tensor": "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_",
        "Tensor operators torch": "bernoulli multinomial",
        "operators torch": "normal poisson",
        "torch": """Generator default_generator get_rng_state initial_seed manual_seed rand rand_like randint randint_like randn
            randn_like randperm seed set_rng_state""",
    },
    "rectifiers": {
        "Tensor nn.functional": "relu_",
        "Tensor nn.functional operators torch": "hardshrink relu",
        "Tensor nn.functional torch": "prelu",
        "nn.functional": "hardsigmoid hardswish hardtanh hardtanh_ leaky_relu_ relu6",
        "nn.functional operators": "leaky_relu softshrink",
        "nn.functional torch": "rrelu rrelu_ threshold threshold_",
        "operators": """hardsigmoid_kernel hardswish_backward hardswish_kernel hardtanh_kernel pass_above pass_inside pass_outside
            prelu_kernel rrelu_kernel slope_below threshold_kernel""",
    },
    "recurrent": {
        "operators": "recurrent_layer",
    },
    "reductions": {
        "Tensor operators special torch": "logsumexp",
        "Tensor operators torch": "count_nonzero",
        "Tensor torch": "all any mean nanmean nansum prod sum",
        "operators": """all_dim any_dim expand_all expand_reduced fill_diagonal_of mean_all mean_dim nan_as_zero prod_all prod_dim
            prod_others sum_all sum_dim sum_off_diagonal""",
    },
    "scans": {
        "Tensor": "cumprod_ cumsum_",
        "Tensor operators torch": "cummax cummin cumprod cumsum logcumsumexp",
        "Tensor torch": "diff",
        "operators": "cumprod_back scaled_sums upper_triangle",
        "torch": "cumulative_trapezoid gradient trapezoid trapz",
    },
    "scatter": {
        "Tensor": "scatter_ scatter_add_",
        "Tensor operators torch": "gather scatter_add",
        "Tensor torch": "scatter take_along_dim",
        "operators": "corner_of gather_backward into_corner scatter_factors scatter_src scatter_value",
    },
    "scatter_reduce": {
        "Tensor": "index_reduce_ scatter_reduce_",
        "Tensor operators torch": "index_reduce scatter_reduce",
        "operators": "refusing_zeros scatter_counts single_zeros",
    },
    "selection": {
        "Tensor operators torch": "amax amin aminmax argmax argmin max min",
        "operators": "gather_ties max_all min_all place_along spread_ties take_along",
    },
    "shaping": {
        "Tensor": "fill_diagonal_ tril_ triu_",
        "Tensor operators": "repeat",
        "Tensor operators torch": "diag_embed flip roll trace tril triu",
        "Tensor torch": "diag diagflat fliplr flipud repeat_interleave rot90 tile",
        "operators": "repeat_backward repeated_places trace_backward",
    },
    "shuffling": {
        "nn.functional operators torch": "channel_shuffle pixel_shuffle pixel_unshuffle",
    },
    "slices": {
        "Tensor": "index_add_ index_copy_ index_fill_",
        "Tensor operators torch": "index_add index_copy index_select",
        "Tensor torch": "index_fill",
        "operators": "comes_last index_fill_number index_select_backward kept_slices reshape_to",
    },
    "softmax": {
        "Tensor nn.functional operators special torch": "log_softmax softmax",
        "nn.functional": "gumbel_softmax softmin",
        "operators": "log_softmax_backward softmax_backward",
    },
    "sorting": {
        "Tensor operators torch": "kthvalue median mode nanmedian sort topk",
        "Tensor torch": "argsort msort",
        "operators": "median_all nanmedian_all",
        "operators torch": "searchsorted",
        "torch": "bucketize",
    },
    "special": {
        "Tensor": "digamma_ erf_ erfc_ erfinv_ i0_ igamma_ igammac_ lgamma_ logit_ mvlgamma_ polygamma_ xlogy_",
        "Tensor operators special torch": "digamma erf erfc erfinv i0 logit xlogy",
        "Tensor operators torch": "igamma igammac lgamma",
        "Tensor special torch": "polygamma",
        "Tensor torch": "mvlgamma",
        "operators": "polygamma_of",
        "operators special": """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx i0e i1 i1e log_ndtr modified_bessel_i0
            modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri scaled_modified_bessel_k0
            scaled_modified_bessel_k1 spherical_bessel_j0 xlog1py zeta""",
        "special": "gammainc gammaincc gammaln multigammaln psi",
    },
    "spectrograms": {
        "Tensor torch": "istft stft",
    },
    "splitting": {
        "Tensor operators torch": "split split_with_sizes unbind unsafe_split unsafe_split_with_sizes",
        "Tensor torch": "chunk dsplit hsplit tensor_split unsafe_chunk vsplit",
    },
    "statistics": {
        "Tensor operators torch": "std var",
        "Tensor torch": "corrcoef cov nanquantile quantile",
        "operators torch": "std_mean var_mean",
    },
    "storage": {
        "Tensor": "storage untyped_storage",
        "torch": "TypedStorage UntypedStorage",
    },
    "trigonometry": {
        "Tensor": """acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan2_ arctan_ arctanh_ asin_ asinh_ atan2_ atan_ atanh_
            cos_ cosh_ hypot_ sin_ sinc_ sinh_ tan_ tanh_""",
        "Tensor nn.functional operators torch": "tanh",
        "Tensor operators special torch": "sinc",
        "Tensor operators torch": "acos acosh asin asinh atan atan2 atanh cos cosh hypot sin sinh tan",
        "Tensor torch": "arccos arccosh arcsin arcsinh arctan arctan2 arctanh",
        "operators": "tanh_backward",
    },
    "views": {
        "Tensor": "H T __pos__ mH mT reshape_as squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_ view_as",
        "Tensor operators": "view",
        "Tensor operators torch": "permute reshape squeeze t transpose unsqueeze",
        "Tensor torch": "adjoint flatten moveaxis movedim positive ravel swapaxes swapdims unflatten",
        "operators": "alias reshape_copy squeeze_one squeeze_some view_dtype",
        "operators torch": "view_as_complex view_as_real",
        "torch": "atleast_1d atleast_2d atleast_3d",
    },
    "windows": {
        "signal.windows": """bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann kaiser
            nuttall""",
        "torch": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    },
}
