"""Which family of `functions/` makes which names. Written by `docs/make_index.py`; a test compares.

`import pellucid` reads this instead of importing the families; each is imported when one of its names is first used. Names
stand under the places where they are found: "operators" (by formulas), "Tensor" (its methods), public modules.
"""

FAMILIES: dict[str, dict[str, str]] = {
    "activations": {
        "Tensor nn.functional torch": "prelu",
        "nn.functional": "glu softsign tanhshrink",
        "nn.functional torch": "rrelu rrelu_",
    },
    "attention": {
        "nn.functional": "multi_head_attention_forward scaled_dot_product_attention",
    },
    "bilinear": {
        "nn.functional torch": "bilinear",
    },
    "broadcasting": {
        "torch": "broadcast_shapes broadcast_tensors",
    },
    "choosing": {
        "torch": "safe_where",
    },
    "comparison": {
        "Tensor torch": "allclose equal is_nonzero",
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
        "Tensor": """bfloat16 bool byte cdouble cfloat char contiguous cpu cuda double float half int is_contiguous is_pinned
            is_shared long pin_memory share_memory_ short to type_as""",
        "torch": "channels_last channels_last_3d contiguous_format memory_format preserve_format",
    },
    "convolution": {
        "nn.functional torch": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d",
        "torch": "convolution",
    },
    "copies": {
        "torch": """alias_copy as_strided_copy diagonal_copy expand_copy permute_copy select_copy split_copy split_with_sizes_copy
            squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy view_as_complex_copy view_as_real_copy
            view_copy""",
    },
    "ctc": {
        "nn.functional": "ctc_loss",
    },
    "differences": {
        "Tensor torch": "diff",
        "torch": "cumulative_trapezoid gradient trapezoid trapz",
    },
    "distances": {
        "nn.functional": "normalize",
        "nn.functional torch": "cosine_similarity pairwise_distance pdist",
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
        "nn.functional": "embedding embedding_bag one_hot",
        "torch": "embedding_renorm_",
    },
    "factories": {
        "Tensor": "new_empty new_empty_strided new_full new_ones new_zeros",
        "torch": """arange cartesian_prod combinations empty empty_like empty_permuted empty_strided eye full full_like linspace
            logspace meshgrid ones ones_like polar range scalar_tensor tril_indices triu_indices vander zeros zeros_like""",
    },
    "folding": {
        "nn.functional": "fold unfold",
    },
    "fourier": {
        "fft": """fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2
            irfftn rfft rfft2 rfftfreq rfftn""",
    },
    "functions_in_place": {
        "torch": """abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ clamp_
            clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ erf_ erfc_ exp2_ exp_ expm1_ fix_ floor_ frac_ gcd_ i0_
            lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_
            sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_""",
    },
    "grid_sampling": {
        "nn.functional": "affine_grid grid_sample",
        "torch": "affine_grid_generator grid_sampler",
    },
    "index_writing": {
        "Tensor": "__setitem__ index_put_",
        "Tensor torch": "index_put",
    },
    "indexing": {
        "Tensor": "__contains__ __getitem__ __iter__ __reversed__",
    },
    "interpolation": {
        "nn.functional": "interpolate upsample upsample_bilinear upsample_nearest",
    },
    "joining": {
        "torch": "block_diag column_stack dstack hstack row_stack vstack",
    },
    "legacy": {
        "Tensor": "apply_ dim_order is_set_to map_ new resize_ set_ type",
        "Tensor torch": "resize_as_",
        "torch": """BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
            ShortTensor detach detach_ fill_ get_device index_put_ layout zero_""",
    },
    "linear_factors": {
        "Tensor linalg torch": "lu_solve",
        "linalg": "lstsq lu lu_factor_ex",
        "torch": "lu_unpack",
    },
    "linear_functions": {
        "Tensor linalg torch": "matrix_exp matrix_power",
        "Tensor torch": "pinverse",
        "linalg": "cond diagonal matrix_norm matrix_rank norm pinv tensorinv tensorsolve vander",
    },
    "linear_packed": {
        "Tensor torch": "lu",
        "linalg": "ldl_factor ldl_factor_ex ldl_solve",
    },
    "linear_solving": {
        "Tensor torch": "cholesky cholesky_inverse cholesky_solve logdet triangular_solve",
        "linalg": "cholesky_ex inv_ex solve_ex solve_triangular",
    },
    "linear_spectra": {
        "Tensor torch": "orgqr qr svd",
        "linalg": "eigvals eigvalsh householder_product svdvals",
    },
    "losses": {
        "nn.functional": "binary_cross_entropy gaussian_nll_loss huber_loss kl_div l1_loss mse_loss smooth_l1_loss",
        "nn.functional torch": "binary_cross_entropy_with_logits poisson_nll_loss",
    },
    "losses_classes": {
        "nn.functional": """cross_entropy linear_cross_entropy multi_margin_loss multilabel_margin_loss
            multilabel_soft_margin_loss nll_loss""",
    },
    "losses_pairs": {
        "nn.functional": """cosine_embedding_loss hinge_embedding_loss margin_ranking_loss soft_margin_loss triplet_margin_loss
            triplet_margin_with_distance_loss""",
    },
    "masked": {
        "masked": """amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median norm normalize prod
            softmax softmin std sum var""",
    },
    "normalisation": {
        "nn.functional": "instance_norm local_response_norm",
        "nn.functional torch": "batch_norm group_norm layer_norm rms_norm",
        "torch": "native_batch_norm native_group_norm native_layer_norm",
    },
    "norms": {
        "Tensor": "renorm_",
        "Tensor linalg torch": "cross",
        "Tensor torch": "dist norm renorm",
        "linalg": "vector_norm",
    },
    "own_geometry": {
        "Tensor": "as_strided_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_",
    },
    "padding": {
        "nn.functional": "pad",
    },
    "parts": {
        "Tensor torch": "as_strided_scatter diagonal_scatter narrow_copy select_scatter slice_scatter",
    },
    "places": {
        "Tensor": "put_",
        "Tensor torch": "argwhere nonzero nonzero_static put",
        "torch": "unravel_index",
    },
    "pooling": {
        "nn.functional": """avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_pool2d_with_indices
            max_pool3d_with_indices""",
        "nn.functional torch": "avg_pool1d max_pool1d max_pool1d_with_indices max_pool2d max_pool3d",
    },
    "pooling_adaptive": {
        "nn.functional": """adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d_with_indices adaptive_max_pool2d
            adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices fractional_max_pool2d
            fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices max_unpool1d max_unpool2d
            max_unpool3d""",
        "nn.functional torch": "adaptive_avg_pool1d adaptive_max_pool1d",
    },
    "powers": {
        "Tensor": "float_power_ ldexp_",
        "Tensor torch": "float_power ldexp",
    },
    "randoms": {
        "Tensor": "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_",
        "torch": """Generator default_generator get_rng_state initial_seed manual_seed normal rand rand_like randint randint_like
            randn randn_like randperm seed set_rng_state""",
    },
    "reductions": {
        "Tensor torch": "nanmean nansum",
    },
    "scattering": {
        "Tensor": "index_fill_ index_reduce_ scatter_",
        "Tensor torch": "index_fill index_reduce scatter take_along_dim",
    },
    "selection": {
        "Tensor torch": "amax amin argmax argmin max min",
    },
    "shapes": {
        "Tensor": "H T __pos__ mH mT reshape_as view_as",
        "Tensor torch": "adjoint flatten moveaxis movedim positive ravel swapaxes swapdims unflatten",
        "torch": "atleast_1d atleast_2d atleast_3d",
    },
    "shaping": {
        "Tensor": "fill_diagonal_",
        "Tensor torch": "diag diagflat fliplr flipud repeat_interleave rot90 tile",
    },
    "softmax": {
        "Tensor nn.functional special torch": "log_softmax softmax",
        "nn.functional": "gumbel_softmax softmin",
    },
    "special": {
        "Tensor": "mvlgamma_",
        "Tensor torch": "mvlgamma",
        "special": "multigammaln",
    },
    "spectrograms": {
        "Tensor torch": "istft stft",
    },
    "splitting": {
        "Tensor torch": """chunk dsplit hsplit split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split
            unsafe_split_with_sizes vsplit""",
    },
    "statistics": {
        "Tensor torch": "corrcoef cov nanquantile quantile",
    },
    "storage": {
        "Tensor": "storage untyped_storage",
        "torch": "TypedStorage UntypedStorage",
    },
    "windows": {
        "signal.windows": """bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann kaiser
            nuttall""",
        "torch": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    },
}
