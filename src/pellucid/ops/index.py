"""Which family of operators makes which names. Written by `docs/make_index.py`; a test compares.

`import pellucid` reads this instead of importing the families; each is imported when one of its names is first used. Under
"operators" are the names that formulas use, under "Tensor" methods, under all others what public modules export.
"""

FAMILIES: dict[str, dict[str, str]] = {
    "activations": {
        "Tensor": "sigmoid sigmoid_",
        "nn.functional": """
            celu celu_ elu elu_ gelu glu logsigmoid mish selu selu_ sigmoid silu softplus softsign
            tanhshrink""",
        "operators": "elu_kernel gelu_exact gelu_tanh log_sigmoid mish sigmoid sigmoid_backward silu softplus",
        "special": "expit",
        "torch": "celu celu_ selu selu_ sigmoid",
    },
    "arithmetic": {
        "Tensor": """
            __add__ __div__ __floordiv__ __iadd__ __idiv__ __ifloordiv__ __imod__ __imul__ __isub__
            __itruediv__ __mod__ __mul__ __neg__ __radd__ __rdiv__ __rfloordiv__ __rmod__ __rmul__
            __rsub__ __rtruediv__ __sub__ __truediv__ add add_ addcdiv addcdiv_ addcmul addcmul_ div div_
            divide divide_ floor_divide floor_divide_ fmod fmod_ lerp lerp_ mul mul_ multiply multiply_
            neg neg_ negative negative_ remainder remainder_ sub sub_ subtract subtract_ true_divide
            true_divide_""",
        "operators": """
            add addcdiv addcmul div_rounded floor_divide fmod lerp mul neg radd remainder rmul rsub sub
            true_divide zeros_as""",
        "torch": """
            add addcdiv addcmul div divide floor_divide fmod lerp mul multiply neg negative remainder
            rsub sub subtract true_divide""",
    },
    "attention": {
        "nn.functional": "multi_head_attention_forward scaled_dot_product_attention",
        "operators": "barrier safe_softmax",
    },
    "batch_places": {
        "operators": "copied_beside counted numbered",
    },
    "bilinear": {
        "nn.functional": "bilinear",
        "torch": "bilinear",
    },
    "bitwise": {
        "Tensor": """
            __and__ __iand__ __ilshift__ __invert__ __ior__ __irshift__ __ixor__ __lshift__ __or__
            __rand__ __rlshift__ __ror__ __rrshift__ __rshift__ __rxor__ __xor__ bitwise_and bitwise_and_
            bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_
            bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ gcd gcd_ lcm lcm_
            logical_and logical_and_ logical_not logical_not_ logical_or logical_or_ logical_xor
            logical_xor_""",
        "operators": """
            bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd lcm
            logical_and logical_not logical_or logical_xor""",
        "torch": """
            bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd lcm
            logical_and logical_not logical_or logical_xor""",
    },
    "choosing": {
        "Tensor": "where",
        "operators": "where",
        "torch": "safe_where where",
    },
    "comparison": {
        "Tensor": """
            __eq__ __ge__ __gt__ __le__ __lt__ __ne__ allclose eq eq_ equal ge ge_ greater greater_
            greater_equal greater_equal_ gt gt_ is_nonzero isclose isfinite isinf isnan isneginf isposinf
            isreal le le_ less less_ less_equal less_equal_ lt lt_ ne ne_ not_equal not_equal_ signbit""",
        "operators": "eq ge gt isclose isfinite isin isinf isnan isneginf isposinf isreal le lt ne signbit",
        "torch": """
            allclose eq equal ge greater greater_equal gt is_nonzero isclose isfinite isin isinf isnan
            isneginf isposinf isreal le less less_equal lt ne not_equal signbit""",
    },
    "complex": {
        "Tensor": "angle conj conj_physical conj_physical_ imag real resolve_conj resolve_neg",
        "operators": "angle complex_of conj conj_physical imag_copy imag_part imaginary_of real_copy real_part",
        "torch": "angle conj conj_physical imag real resolve_conj resolve_neg",
    },
    "construction": {
        "Tensor": "__array__ __dlpack__ __dlpack_device__ new_tensor numpy",
        "torch": """
            as_tensor asarray from_dlpack from_numpy frombuffer is_complex is_conj is_floating_point
            is_inference is_neg is_same_size is_signed is_storage is_tensor numel tensor""",
    },
    "contractions": {
        "Tensor": "ger inner kron outer vdot",
        "linalg": "matmul multi_dot vecdot",
        "torch": "chain_matmul ger inner kron outer tensordot vdot",
    },
    "conversion": {
        "Tensor": """
            bfloat16 bool byte cdouble cfloat char clone contiguous copy_ cpu cuda double fill_ float
            half int is_contiguous is_pinned is_shared long pin_memory share_memory_ short to type_as
            zero_""",
        "operators": "_to_copy clone copy fill_number fill_tensor zero",
        "torch": "channels_last channels_last_3d clone contiguous_format fill memory_format preserve_format zero",
    },
    "convolution": {
        "nn.functional": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d",
        "operators": "_convolution _convolution_transposed _convolution_weight",
        "torch": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution",
    },
    "copies": {
        "torch": """
            alias_copy as_strided_copy diagonal_copy expand_copy permute_copy select_copy split_copy
            split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy
            unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy""",
    },
    "counting": {
        "Tensor": "bincount histc histogram unique unique_consecutive",
        "operators": "_unique2 bincount histc histogram unique_consecutive unique_dim",
        "torch": "bincount histc histogram unique unique_consecutive",
    },
    "ctc": {
        "nn.functional": "ctc_loss",
        "operators": "ctc_labels ctc_loss ctc_loss_backward",
    },
    "distances": {
        "nn.functional": "cosine_similarity normalize pairwise_distance pdist",
        "operators": "_cdist _pdist at_least euclidean_dist pair_differences pair_differences_backward",
        "torch": "cdist cosine_similarity pairwise_distance pdist",
    },
    "dropout": {
        "nn.functional": "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
        "torch": "alpha_dropout dropout feature_alpha_dropout feature_dropout native_dropout",
    },
    "einsum": {
        "torch": "einsum",
    },
    "embedding": {
        "nn.functional": "embedding embedding_bag one_hot",
        "operators": """
            bag_numbers embedding embedding_dense_backward embedding_shares largest_in_bags one_hot_rows
            sum_bags""",
        "torch": "embedding embedding_renorm_",
    },
    "expansion": {
        "Tensor": "broadcast_to expand expand_as sum_to_size",
        "operators": "expand sum_to_size",
        "torch": "broadcast_shapes broadcast_tensors broadcast_to",
    },
    "extrema": {
        "Tensor": """
            clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ copysign copysign_ fmax
            fmin heaviside heaviside_ ldexp ldexp_ logaddexp logaddexp2 maximum minimum nextafter
            nextafter_""",
        "operators": """
            clamp_number clamp_tensor copysign fmax fmin heaviside ldexp logaddexp logaddexp2 maximum
            minimum nextafter share within""",
        "torch": """
            clamp clamp_max clamp_min clip copysign fmax fmin heaviside ldexp logaddexp logaddexp2
            maximum minimum nextafter""",
    },
    "factories": {
        "Tensor": "new_empty new_empty_strided new_full new_ones new_zeros",
        "operators": "complex",
        "torch": """
            arange cartesian_prod combinations complex empty empty_like empty_permuted empty_strided eye
            full full_like linspace logspace meshgrid ones ones_like polar range scalar_tensor
            tril_indices triu_indices vander zeros zeros_like""",
    },
    "flat": {
        "Tensor": "put put_ take",
        "operators": "take",
        "torch": "put take",
    },
    "folding": {
        "nn.functional": "fold unfold",
        "operators": "col2im im2col",
    },
    "fourier": {
        "fft": """
            fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2
            ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn""",
        "operators": "fft_c2c fft_c2r fft_r2c scaled_pairs",
    },
    "functions_in_place": {
        "torch": """
            abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_
            atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ erf_ erfc_
            exp2_ exp_ expm1_ fix_ floor_ frac_ gcd_ i0_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_
            nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_
            sqrt_ square_ tan_ tanh_ trunc_ xlogy_""",
    },
    "grid_sampling": {
        "nn.functional": "affine_grid grid_sample",
        "operators": """
            grid_elements grid_gather grid_sampler_2d grid_sampler_3d grid_scatter grid_weigh
            grid_weights""",
        "torch": "affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d",
    },
    "histograms": {
        "operators": "histogramdd",
        "torch": "histogramdd",
    },
    "index_writing": {
        "Tensor": "__setitem__ index_put index_put_",
        "operators": "index_put index_zero",
        "torch": "index_put",
    },
    "indexing": {
        "Tensor": "__contains__ __getitem__ __iter__ __reversed__",
        "operators": """
            assemble basic_alias basic_backward basic_select basic_unsqueeze index index_at
            index_at_backward index_backward slice""",
    },
    "interpolation": {
        "nn.functional": "interpolate upsample upsample_bilinear upsample_nearest",
        "operators": """
            resample upsample_bicubic2d upsample_bicubic2d_aa upsample_bilinear2d upsample_bilinear2d_aa
            upsample_lanczos2d_aa upsample_linear1d upsample_nearest1d upsample_nearest2d
            upsample_nearest3d upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d
            upsample_trilinear3d""",
    },
    "joining": {
        "operators": "block_diag cat stack",
        "torch": "block_diag cat column_stack concat concatenate dstack hstack row_stack stack vstack",
    },
    "legacy": {
        "Tensor": "apply_ dim_order is_set_to map_ new resize_ resize_as_ set_ type",
        "torch": """
            BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor
            LongTensor ShortTensor detach detach_ fill_ get_device index_put_ layout resize_as_ zero_""",
    },
    "linear_factors": {
        "Tensor": "lu_solve",
        "linalg": "lstsq lu lu_factor lu_factor_ex lu_solve",
        "operators": "first_zero linalg_lu_packed lu_permutation",
        "torch": "lu_solve lu_unpack",
    },
    "linear_functions": {
        "Tensor": "matrix_exp matrix_power pinverse",
        "linalg": """
            cond diagonal matrix_exp matrix_norm matrix_power matrix_rank norm pinv tensorinv tensorsolve
            vander""",
        "operators": "count_above linalg_matrix_exp linalg_pinv",
        "torch": "matrix_exp matrix_power pinverse",
    },
    "linear_packed": {
        "Tensor": "geqrf lu ormqr",
        "linalg": "ldl_factor ldl_factor_ex ldl_solve",
        "operators": "geqrf linalg_ldl_factor_ex linalg_ldl_solve ormqr",
        "torch": "geqrf lu ormqr",
    },
    "linear_solving": {
        "Tensor": "cholesky cholesky_inverse cholesky_solve det inverse logdet slogdet triangular_solve",
        "linalg": "LinAlgError cholesky cholesky_ex det inv inv_ex slogdet solve solve_ex solve_triangular",
        "operators": "cofactors failures linalg_cholesky linalg_det linalg_inv linalg_slogdet linalg_solve",
        "torch": "cholesky cholesky_inverse cholesky_solve det inverse logdet slogdet triangular_solve",
    },
    "linear_spectra": {
        "Tensor": "orgqr qr svd",
        "linalg": "eig eigh eigvals eigvalsh householder_product qr svd svdvals",
        "operators": "linalg_eig linalg_eigh linalg_qr linalg_svd",
        "torch": "orgqr qr svd",
    },
    "losses": {
        "nn.functional": """
            binary_cross_entropy binary_cross_entropy_with_logits gaussian_nll_loss huber_loss kl_div
            l1_loss mse_loss poisson_nll_loss smooth_l1_loss""",
        "operators": "binary_cross_entropy binary_cross_entropy_with_logits huber_loss mse_loss smooth_l1_loss",
        "torch": "binary_cross_entropy_with_logits poisson_nll_loss",
    },
    "losses_classes": {
        "nn.functional": """
            cross_entropy linear_cross_entropy multi_margin_loss multilabel_margin_loss
            multilabel_soft_margin_loss nll_loss""",
        "operators": "label_pairs nll_loss nll_loss_backward",
    },
    "losses_pairs": {
        "nn.functional": """
            cosine_embedding_loss hinge_embedding_loss margin_ranking_loss soft_margin_loss
            triplet_margin_loss triplet_margin_with_distance_loss""",
        "operators": "soft_margin_loss",
    },
    "masked": {
        "masked": """
            amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median norm
            normalize prod softmax softmin std sum var""",
    },
    "masking": {
        "Tensor": "masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select",
        "operators": """
            masked_fill masked_fill_tensor masked_place masked_scatter masked_scatter_backward
            masked_select masked_select_backward""",
        "torch": "masked_fill masked_scatter masked_select",
    },
    "normalisation": {
        "nn.functional": "batch_norm group_norm instance_norm layer_norm local_response_norm rms_norm",
        "operators": """
            normalised normalised_backward normalised_batch normalised_fixed normalised_gradients
            normalised_groups normalised_squares normalised_unit""",
        "torch": """
            batch_norm group_norm layer_norm native_batch_norm native_group_norm native_layer_norm
            rms_norm""",
    },
    "norms": {
        "Tensor": "cross dist norm renorm renorm_",
        "linalg": "cross vector_norm",
        "operators": "linalg_cross vector_norm",
        "torch": "cross dist norm renorm",
    },
    "padding": {
        "nn.functional": "pad",
        "operators": """
            circular_pad1d circular_pad2d circular_pad3d constant_pad_nd reflect_pad1d reflect_pad2d
            reflect_pad3d repeated_padding repeated_padding_backward replicate_pad1d replicate_pad2d
            replicate_pad3d""",
        "torch": "constant_pad_nd",
    },
    "parts": {
        "Tensor": """
            as_strided as_strided_ as_strided_scatter diagonal diagonal_scatter narrow narrow_copy select
            select_scatter slice_scatter unfold""",
        "operators": "as_strided diagonal diagonal_backward narrow restride select unfold unfold_backward",
        "torch": """
            as_strided as_strided_scatter diagonal diagonal_scatter narrow narrow_copy select
            select_scatter slice_scatter""",
    },
    "places": {
        "Tensor": "argwhere nonzero nonzero_static",
        "operators": "coordinates",
        "torch": "argwhere nonzero nonzero_static unravel_index",
    },
    "pointwise": {
        "Tensor": """
            __abs__ abs abs_ absolute absolute_ ceil ceil_ deg2rad deg2rad_ exp exp2 exp2_ exp_ expm1
            expm1_ fix fix_ floor floor_ frac frac_ frexp log log10 log10_ log1p log1p_ log2 log2_ log_
            nan_to_num nan_to_num_ rad2deg rad2deg_ reciprocal reciprocal_ round round_ rsqrt rsqrt_ sgn
            sgn_ sign sign_ sqrt sqrt_ trunc trunc_""",
        "operators": """
            abs ceil deg2rad exp exp2 expm1 floor frac frexp log log10 log1p log2 nan_to_num rad2deg
            reciprocal round rsqrt sgn sign sqrt times_power_of_two trunc""",
        "special": "exp exp2 expm1 log1p round",
        "torch": """
            abs absolute ceil deg2rad exp exp2 expm1 fix floor frac frexp log log10 log1p log2 nan_to_num
            rad2deg reciprocal round rsqrt sgn sign sqrt trunc""",
    },
    "polynomials": {
        "operators": """
            chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
            hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
            shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
            shifted_chebyshev_polynomial_w""",
        "special": """
            chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
            hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
            shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
            shifted_chebyshev_polynomial_w""",
    },
    "pooling": {
        "nn.functional": """
            avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_pool1d
            max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices""",
        "operators": """
            _avg_pool _avg_pool_backward _max_pool _max_pool_backward _max_pool_picked max_pool_indices""",
        "torch": "avg_pool1d max_pool1d max_pool1d_with_indices max_pool2d max_pool3d",
    },
    "pooling_adaptive": {
        "nn.functional": """
            adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
            adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
            adaptive_max_pool3d adaptive_max_pool3d_with_indices fractional_max_pool2d
            fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices
            max_unpool1d max_unpool2d max_unpool3d""",
        "operators": """
            _adaptive_avg_pool _adaptive_avg_pool_backward _image_gather _image_scatter
            adaptive_max_indices fractional_indices""",
        "torch": "adaptive_avg_pool1d adaptive_max_pool1d",
    },
    "powers": {
        "Tensor": "__ipow__ __pow__ __rpow__ float_power float_power_ pow pow_ square square_",
        "operators": "pow_less_one pow_scalar pow_tensor pow_vanishes",
        "torch": "float_power pow square",
    },
    "products": {
        "Tensor": "__matmul__ __rmatmul__ bmm dot matmul mm mv",
        "nn.functional": "linear",
        "operators": "bmm dot gram linear matmul mm mv",
        "torch": "bmm dot matmul mm mv",
    },
    "products_added": {
        "Tensor": "addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_",
        "operators": "addbmm addmm addmv addr baddbmm",
        "torch": "addbmm addmm addmv addr baddbmm",
    },
    "random_gammas": {
        "operators": "_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial",
        "torch": "_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial",
    },
    "randoms": {
        "Tensor": """
            bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_
            uniform_""",
        "operators": "bernoulli multinomial normal poisson",
        "torch": """
            Generator bernoulli default_generator get_rng_state initial_seed manual_seed multinomial
            normal poisson rand rand_like randint randint_like randn randn_like randperm seed
            set_rng_state""",
    },
    "rectifiers": {
        "Tensor": "hardshrink prelu relu relu_",
        "nn.functional": """
            hardshrink hardsigmoid hardswish hardtanh hardtanh_ leaky_relu leaky_relu_ prelu relu relu6
            relu_ rrelu rrelu_ softshrink threshold threshold_""",
        "operators": """
            hardshrink hardsigmoid_kernel hardswish_kernel hardtanh_kernel leaky_relu pass_above
            pass_inside pass_outside prelu_kernel relu rrelu_kernel slope_below softshrink
            threshold_kernel""",
        "torch": "hardshrink prelu relu rrelu rrelu_ threshold threshold_",
    },
    "reductions": {
        "Tensor": "all any count_nonzero logsumexp mean nanmean nansum prod sum",
        "operators": """
            all_dim any_dim count_nonzero expand_all expand_reduced fill_diagonal_of logsumexp mean_all
            mean_dim nan_as_zero prod_all prod_dim prod_others sum_all sum_dim sum_off_diagonal""",
        "special": "logsumexp",
        "torch": "all any count_nonzero logsumexp mean nanmean nansum prod sum",
    },
    "scans": {
        "Tensor": "cummax cummin cumprod cumprod_ cumsum cumsum_ diff logcumsumexp",
        "operators": """
            cummax cummin cumprod cumprod_back cumsum cumsum_back logcumsumexp logcumsumexp_back
            logcumsumexp_forth upper_triangle""",
        "torch": "cummax cummin cumprod cumsum cumulative_trapezoid diff gradient logcumsumexp trapezoid trapz",
    },
    "scatter": {
        "Tensor": "gather scatter scatter_ scatter_add scatter_add_ take_along_dim",
        "operators": """
            corner_of gather gather_backward into_corner scatter_add scatter_factors scatter_src
            scatter_value""",
        "torch": "gather scatter scatter_add take_along_dim",
    },
    "scatter_reduce": {
        "Tensor": "index_reduce index_reduce_ scatter_reduce scatter_reduce_",
        "operators": "index_reduce refusing_zeros scatter_counts scatter_reduce single_zeros",
        "torch": "index_reduce scatter_reduce",
    },
    "selection": {
        "Tensor": "amax amin aminmax argmax argmin max min",
        "operators": """
            amax amin aminmax argmax argmin gather_ties max max_all min min_all place_along spread_ties
            take_along""",
        "torch": "amax amin aminmax argmax argmin max min",
    },
    "shaping": {
        "Tensor": """
            diag diag_embed diagflat fill_diagonal_ flip fliplr flipud repeat repeat_interleave roll
            rot90 tile trace tril tril_ triu triu_""",
        "operators": "diag_embed flip repeat repeat_backward repeated_places roll trace trace_backward tril triu",
        "torch": "diag diag_embed diagflat flip fliplr flipud repeat_interleave roll rot90 tile trace tril triu",
    },
    "shuffling": {
        "nn.functional": "channel_shuffle pixel_shuffle pixel_unshuffle",
        "operators": "channel_shuffle pixel_shuffle pixel_unshuffle",
        "torch": "channel_shuffle pixel_shuffle pixel_unshuffle",
    },
    "slices": {
        "Tensor": "index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_select",
        "operators": """
            comes_last index_add index_copy index_fill_number index_select index_select_backward
            kept_slices reshape_to""",
        "torch": "index_add index_copy index_fill index_select",
    },
    "softmax": {
        "Tensor": "log_softmax softmax",
        "nn.functional": "gumbel_softmax log_softmax softmax softmin",
        "operators": "log_softmax log_softmax_backward softmax softmax_backward",
        "special": "log_softmax softmax",
        "torch": "log_softmax softmax",
    },
    "sorting": {
        "Tensor": "argsort kthvalue median mode msort nanmedian sort topk",
        "operators": "kthvalue median median_all mode nanmedian nanmedian_all searchsorted sort topk",
        "torch": "argsort bucketize kthvalue median mode msort nanmedian searchsorted sort topk",
    },
    "special": {
        "Tensor": """
            digamma digamma_ erf erf_ erfc erfc_ erfinv erfinv_ i0 i0_ igamma igamma_ igammac igammac_
            lgamma lgamma_ logit logit_ mvlgamma mvlgamma_ polygamma polygamma_ xlogy xlogy_""",
        "operators": """
            airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv i0 i0e i1
            i1e igamma igammac lgamma log_ndtr logit modified_bessel_i0 modified_bessel_i1
            modified_bessel_k0 modified_bessel_k1 ndtr ndtri polygamma_of scaled_modified_bessel_k0
            scaled_modified_bessel_k1 spherical_bessel_j0 xlog1py xlogy zeta""",
        "special": """
            airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv gammainc
            gammaincc gammaln i0 i0e i1 i1e log_ndtr logit modified_bessel_i0 modified_bessel_i1
            modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi
            scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 xlog1py xlogy zeta""",
        "torch": "digamma erf erfc erfinv i0 igamma igammac lgamma logit mvlgamma polygamma xlogy",
    },
    "spectrograms": {
        "Tensor": "istft stft",
        "torch": "istft stft",
    },
    "splitting": {
        "Tensor": """
            chunk dsplit hsplit split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split
            unsafe_split_with_sizes vsplit""",
        "operators": "split split_with_sizes unbind unsafe_split unsafe_split_with_sizes",
        "torch": """
            chunk dsplit hsplit split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split
            unsafe_split_with_sizes vsplit""",
    },
    "statistics": {
        "Tensor": "corrcoef cov nanquantile quantile std var",
        "operators": "std std_mean var var_mean",
        "torch": "corrcoef cov nanquantile quantile std std_mean var var_mean",
    },
    "storage": {
        "Tensor": "storage untyped_storage",
        "torch": "TypedStorage UntypedStorage",
    },
    "trigonometry": {
        "Tensor": """
            acos acos_ acosh acosh_ arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_
            arctan arctan2 arctan2_ arctan_ arctanh arctanh_ asin asin_ asinh asinh_ atan atan2 atan2_
            atan_ atanh atanh_ cos cos_ cosh cosh_ hypot hypot_ sin sin_ sinc sinc_ sinh sinh_ tan tan_
            tanh tanh_""",
        "nn.functional": "tanh",
        "operators": "acos acosh asin asinh atan atan2 atanh cos cosh hypot sin sinc sinh tan tanh tanh_backward",
        "special": "sinc",
        "torch": """
            acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh
            cos cosh hypot sin sinc sinh tan tanh""",
    },
    "views": {
        "Tensor": """
            H T __pos__ adjoint flatten mH mT moveaxis movedim permute positive ravel reshape reshape_as
            squeeze squeeze_ swapaxes swapaxes_ swapdims swapdims_ t t_ transpose transpose_ unflatten
            unsqueeze unsqueeze_ view view_as""",
        "operators": """
            alias permute reshape reshape_copy squeeze squeeze_one squeeze_some t transpose unsqueeze
            view view_as_complex view_as_real view_dtype""",
        "torch": """
            adjoint atleast_1d atleast_2d atleast_3d flatten moveaxis movedim permute positive ravel
            reshape squeeze swapaxes swapdims t transpose unflatten unsqueeze view_as_complex
            view_as_real""",
    },
    "windows": {
        "signal.windows": """
            bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann
            kaiser nuttall""",
        "torch": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    },
}
