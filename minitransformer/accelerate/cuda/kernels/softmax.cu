// layers/softmax.py between the matrix products of layers/attention.py, with scale and dropout.

// weights = softmax(scale * scores) where the mask allows, in place; dropped = weights * m.
// A row with nothing allowed has weights 0. Without dropout, `dropped` is null.
// The mask is (B, H, T, S) with any strides, 0 where it broadcasts; null allows all. Row layout.
// 13 bytes an entry, 9 without dropout.
extern "C" __global__ void softmax(Real* __restrict__ weights, Real* __restrict__ dropped,
                                   const bool* __restrict__ mask, long long mask_b,
                                   long long mask_h, long long mask_t, long long mask_s,
                                   int heads, int length, long long rows, long long width,
                                   Real scale, u64 key, u64 draw, unsigned threshold,
                                   Real dropout_scale) {
    long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    long long columns = row < rows ? width : 0;  // no row left: only keep the warp company
    Real* out = weights + row * width;
    if (mask != nullptr) {
        long long t = row % length, h = row / length % heads, b = row / length / heads;
        mask += b * mask_b + h * mask_h + t * mask_t;
    }

    Real peak = LOWEST;
    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four v = load(out, c, width, LOWEST);
        for (int i = 0; i < 4; i++) {
            bool allowed = c + i < width && (mask == nullptr || mask[(c + i) * mask_s]);
            v.value[i] = allowed ? scale * v.value[i] : LOWEST;
            if (v.value[i] > peak) peak = v.value[i];
        }
        store(out, c, width, v);
    }
    peak = row_max(peak);
    if (peak == LOWEST) peak = 0;  // nothing allowed: exp(LOWEST - 0) is 0, exp(LOWEST - LOWEST) is 1

    Real sum = 0;
    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four v = load(out, c, width, LOWEST);
        for (int i = 0; i < 4; i++) {
            v.value[i] = exp(v.value[i] - peak);
            sum += v.value[i];
        }
        store(out, c, width, v);
    }
    sum = row_sum(sum);
    Real inverse = sum == 0 ? 1 : 1 / sum;

    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four v = load(out, c, width);
        for (int i = 0; i < 4; i++) v.value[i] *= inverse;
        store(out, c, width, v);
        if (dropped != nullptr) {
            Four m = dropout_factors(key, draw, threshold, dropout_scale, row, c, width);
            for (int i = 0; i < 4; i++) v.value[i] *= m.value[i];
            store(dropped + row * width, c, width, v);
        }
    }
}

// dscores = scale * w (dw m - sum(dw m w)), in place of dw, the gradient of the dropped weights.
// Row layout. 12 bytes an entry.
extern "C" __global__ void softmax_backward(Real* __restrict__ dweights,
                                            const Real* __restrict__ weights,
                                            long long rows, long long width, Real scale,
                                            u64 key, u64 draw, unsigned threshold,
                                            Real dropout_scale) {
    long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    long long columns = row < rows ? width : 0;

    Real dot = 0;
    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four d = load(dweights + row * width, c, width), w = load(weights + row * width, c, width);
        Four m = dropout_factors(key, draw, threshold, dropout_scale, row, c, width);
        for (int i = 0; i < 4; i++) {
            d.value[i] *= m.value[i];
            dot += d.value[i] * w.value[i];
        }
        store(dweights + row * width, c, width, d);
    }
    dot = row_sum(dot);

    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four d = load(dweights + row * width, c, width), w = load(weights + row * width, c, width);
        for (int i = 0; i < 4; i++) d.value[i] = scale * (w.value[i] * (d.value[i] - dot));
        store(dweights + row * width, c, width, d);
    }
}
