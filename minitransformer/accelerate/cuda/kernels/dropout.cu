// layers/dropout.py and layers/residual.py

// y = x * m, m of the draw. The backward is the same kernel: dx = dy * m.
// 8 bytes an entry.
extern "C" __global__ void dropout(const Real* __restrict__ x, Real* __restrict__ y,
                                   long long rows, long long width,
                                   u64 key, u64 draw, unsigned threshold, Real scale) {
    long long column = 4 * (blockIdx.x * (long long)blockDim.x + threadIdx.x);
    if (column >= width) return;
    long long stride = (long long)gridDim.y * blockDim.y;
    for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += stride) {
        Four v = load(x + row * width, column, width);
        Four m = dropout_factors(key, draw, threshold, scale, row, column, width);
        for (int i = 0; i < 4; i++) v.value[i] *= m.value[i];
        store(y + row * width, column, width, v);
    }
}

// z = x + h * m. Its backward is `dropout` of dz, and dx is dz itself.
// 12 bytes an entry.
extern "C" __global__ void residual(const Real* __restrict__ x, const Real* __restrict__ h,
                                    Real* __restrict__ z, long long rows, long long width,
                                    u64 key, u64 draw, unsigned threshold, Real scale) {
    long long column = 4 * (blockIdx.x * (long long)blockDim.x + threadIdx.x);
    if (column >= width) return;
    long long stride = (long long)gridDim.y * blockDim.y;
    for (long long row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += stride) {
        Four v = load(x + row * width, column, width);
        Four u = load(h + row * width, column, width);
        Four m = dropout_factors(key, draw, threshold, scale, row, column, width);
        for (int i = 0; i < 4; i++) v.value[i] += u.value[i] * m.value[i];
        store(z + row * width, column, width, v);
    }
}
