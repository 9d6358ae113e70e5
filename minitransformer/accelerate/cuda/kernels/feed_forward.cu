// layers/feed_forward.py: what lies between the two matrix products, and the sums for biases.

// h = max(0, h + bias) * m, in place.
// 8 bytes an entry.
extern "C" __global__ void bias_relu_dropout(Real* __restrict__ h, const Real* __restrict__ bias,
                                             long long rows, long long width,
                                             u64 key, u64 draw, unsigned threshold, Real scale) {
    long long column = 4 * (blockIdx.x * (long long)blockDim.x + threadIdx.x);
    if (column >= width) return;
    Four b = load(bias, column, width);
    long long stride = (long long)gridDim.y * blockDim.y;
    for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += stride) {
        Four v = load(h + row * width, column, width);
        Four m = dropout_factors(key, draw, threshold, scale, row, column, width);
        for (int i = 0; i < 4; i++) {
            Real sum = v.value[i] + b.value[i];
            v.value[i] = sum < 0 ? 0 : sum * m.value[i];  // NaN is not below 0 and stays
        }
        store(h + row * width, column, width, v);
    }
}

// dh = dh * scale where the forward left something, 0 where ReLU or dropout left 0: one look at h
// does for both masks. In place; and the sums of dh over the rows of each grid row, for dbias.
// 12 bytes an entry.
extern "C" __global__ void relu_dropout_backward(Real* __restrict__ dh, const Real* __restrict__ h,
                                                 Real* __restrict__ sums,
                                                 long long rows, long long width, Real scale) {
    long long column = 4 * (blockIdx.x * (long long)blockDim.x + threadIdx.x);
    long long stride = (long long)gridDim.y * blockDim.y;
    Four sum = {};
    if (column < width) {
        for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += stride) {
            Four d = load(dh + row * width, column, width);
            Four alive = load(h + row * width, column, width);
            for (int i = 0; i < 4; i++) {
                d.value[i] = alive.value[i] > 0 ? d.value[i] * scale : 0;
                sum.value[i] += d.value[i];
            }
            store(dh + row * width, column, width, d);
        }
    }
    sum = sum_over_y(sum);
    if (threadIdx.y == 0 && column < width) store(sums + blockIdx.y * width, column, width, sum);
}

// The sums of x over the rows of each grid row: (gridDim.y, width). Launched once more on what it
// gave, with one grid row, it yields the sums of all rows, added in a fixed order.
// 4 bytes an entry.
extern "C" __global__ void column_sums(const Real* __restrict__ x, Real* __restrict__ sums,
                                       long long rows, long long width) {
    long long column = 4 * (blockIdx.x * (long long)blockDim.x + threadIdx.x);
    long long stride = (long long)gridDim.y * blockDim.y;
    Four sum = {};
    if (column < width) {
        for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += stride) {
            Four v = load(x + row * width, column, width);
            for (int i = 0; i < 4; i++) sum.value[i] += v.value[i];
        }
    }
    sum = sum_over_y(sum);
    if (threadIdx.y == 0 && column < width) store(sums + blockIdx.y * width, column, width, sum);
}
