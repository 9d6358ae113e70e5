// layers/layer_norm.py. The cache holds x, mean and 1 / sigma of each row; x_hat is made again.

// y = gamma (x - mean) / sigma + beta. Row layout.
// 8 bytes an entry: a row is read three times and comes from memory once.
extern "C" __global__ void layer_norm(const Real* __restrict__ x, const Real* __restrict__ gamma,
                                      const Real* __restrict__ beta, Real* __restrict__ y,
                                      Real* __restrict__ mean_of, Real* __restrict__ inverse_of,
                                      long long rows, long long width, Real epsilon) {
    long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    long long columns = row < rows ? width : 0;  // no row left: only keep the warp company
    const Real* in = x + row * width;

    Real sum = 0;
    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four v = load(in, c, width);
        for (int i = 0; i < 4; i++) sum += v.value[i];
    }
    Real mean = row_sum(sum) / width;

    sum = 0;  // of squares around the mean: the difference of two large means would cancel
    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four v = load(in, c, width, mean);
        for (int i = 0; i < 4; i++) sum += (v.value[i] - mean) * (v.value[i] - mean);
    }
    Real inverse = 1 / sqrt(row_sum(sum) / width + epsilon);

    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four v = load(in, c, width), g = load(gamma, c, width), b = load(beta, c, width);
        for (int i = 0; i < 4; i++) {
            v.value[i] = g.value[i] * ((v.value[i] - mean) * inverse) + b.value[i];
        }
        store(y + row * width, c, width, v);
    }
    if (threadIdx.x == 0 && row < rows) {
        mean_of[row] = mean;
        inverse_of[row] = inverse;
    }
}

// dx = (dx_hat - mean(dx_hat) - x_hat mean(dx_hat x_hat)) / sigma, dx_hat = dy gamma. Row layout.
// 12 bytes an entry.
extern "C" __global__ void layer_norm_backward(
        const Real* __restrict__ dy, const Real* __restrict__ x, const Real* __restrict__ gamma,
        const Real* __restrict__ mean_of, const Real* __restrict__ inverse_of,
        Real* __restrict__ dx, long long rows, long long width) {
    long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    long long columns = row < rows ? width : 0;
    Real mean = row < rows ? mean_of[row] : 0, inverse = row < rows ? inverse_of[row] : 0;

    Real sum = 0, dot = 0;
    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four d = load(dy + row * width, c, width), g = load(gamma, c, width);
        Four v = load(x + row * width, c, width);
        for (int i = 0; i < 4; i++) {
            Real dx_hat = d.value[i] * g.value[i];
            sum += dx_hat;
            dot += dx_hat * ((v.value[i] - mean) * inverse);
        }
    }
    Real through_mean = row_sum(sum) / width, through_sigma = row_sum(dot) / width;

    for (long long c = 4 * threadIdx.x; c < columns; c += 4 * blockDim.x) {
        Four d = load(dy + row * width, c, width), g = load(gamma, c, width);
        Four v = load(x + row * width, c, width);
        for (int i = 0; i < 4; i++) {
            Real x_hat = (v.value[i] - mean) * inverse;
            Real dx_hat = d.value[i] * g.value[i];
            d.value[i] = (dx_hat - through_mean - x_hat * through_sigma) * inverse;
        }
        store(dx + row * width, c, width, d);
    }
}

// The sums of dy x_hat and of dy over the rows of each grid row, side by side: (gridDim.y, 2 width).
// `column_sums` of them is dgamma and dbeta. Elementwise layout.
// 8 bytes an entry.
extern "C" __global__ void layer_norm_sums(
        const Real* __restrict__ dy, const Real* __restrict__ x,
        const Real* __restrict__ mean_of, const Real* __restrict__ inverse_of,
        Real* __restrict__ sums, long long rows, long long width) {
    long long column = 4 * (blockIdx.x * (long long)blockDim.x + threadIdx.x);
    long long stride = (long long)gridDim.y * blockDim.y;
    Four dgamma = {}, dbeta = {};
    if (column < width) {
        for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += stride) {
            Four d = load(dy + row * width, column, width);
            Four v = load(x + row * width, column, width);
            for (int i = 0; i < 4; i++) {
                dgamma.value[i] += d.value[i] * ((v.value[i] - mean_of[row]) * inverse_of[row]);
                dbeta.value[i] += d.value[i];
            }
        }
    }
    dgamma = sum_over_y(dgamma);
    dbeta = sum_over_y(dbeta);
    if (threadIdx.y == 0 && column < width) {
        Real* out = sums + blockIdx.y * 2 * width;
        store(out, column, width, dgamma);
        store(out + width, column, width, dbeta);
    }
}
