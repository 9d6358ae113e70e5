// optim/adam.py over flat arrays of `size` numbers.

// The factor of the gradient is scale, times *scale_there where that is not null: what clipping
// gives is never read by the host. rate = eta / (1 - beta_1^t), correction = 1 / (1 - beta_2^t).
// 28 bytes a parameter.
extern "C" __global__ void adam(Real* __restrict__ data, const Real* __restrict__ grad,
                                Real* __restrict__ m, Real* __restrict__ v, long long size,
                                Real rate, Real correction, Real beta_1, Real rest_1, Real beta_2,
                                Real rest_2, Real epsilon, Real scale,
                                const Real* __restrict__ scale_there) {
    long long at = 4 * (blockIdx.x * (long long)blockDim.x + threadIdx.x);
    if (at >= size) return;
    if (scale_there != nullptr) scale *= *scale_there;
    Four theta = load(data, at, size), g = load(grad, at, size);
    Four first = load(m, at, size), second = load(v, at, size);
    for (int i = 0; i < 4; i++) {
        Real gradient = g.value[i] * scale;
        first.value[i] = beta_1 * first.value[i] + rest_1 * gradient;
        second.value[i] = beta_2 * second.value[i] + rest_2 * gradient * gradient;
        Real root = sqrt(second.value[i] * correction) + epsilon;
        theta.value[i] -= rate * first.value[i] / root;
    }
    store(data, at, size, theta);
    store(m, at, size, first);
    store(v, at, size, second);
}
