// loss/cross_entropy.py and loss/consistency.py: the loss of each row and the gradient of its logits, in one launch.
// One block a row.

// Of any part of a row: its largest entry, the sum of exp(z - largest), and the sum of z.
struct Part {
    Real largest, sum, total;
};

__device__ inline Part merged(Part a, Part b) {
    Real largest = a.largest > b.largest ? a.largest : b.largest;
    Real sum = a.sum * exp(a.largest - largest) + b.sum * exp(b.largest - largest);
    return {largest, sum, a.total + b.total};
}

// The whole row, for every thread of the block, all of which have to call it.
__device__ inline Part whole_row(const Real* z, long long width) {
    __shared__ Part parts[THREADS / 32];
    Part part = {LOWEST, 0, 0};
    for (long long c = 4 * threadIdx.x; c < width; c += 4 * THREADS) {
        Four v = load(z, c, width, LOWEST);
        Real largest = part.largest;
        for (int i = 0; i < 4; i++) largest = v.value[i] > largest ? v.value[i] : largest;
        part.sum *= exp(part.largest - largest);
        part.largest = largest;
        for (int i = 0; i < 4 && c + i < width; i++) {
            part.sum += exp(v.value[i] - largest);
            part.total += v.value[i];
        }
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        Part other = {__shfl_xor_sync(0xffffffffu, part.largest, offset),
                      __shfl_xor_sync(0xffffffffu, part.sum, offset),
                      __shfl_xor_sync(0xffffffffu, part.total, offset)};
        part = merged(part, other);
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
    __syncthreads();
    part = parts[0];
    for (int warp = 1; warp < THREADS / 32; warp++) part = merged(part, parts[warp]);
    __syncthreads();  // the next call writes to parts
    return part;
}

// The sum of x over the block, for every thread of it, all of which have to call it.
__device__ inline Real block_sum(Real x) {
    __shared__ Real sums[THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    x = sums[0];
    for (int warp = 1; warp < THREADS / 32; warp++) x += sums[warp];
    __syncthreads();  // the next call writes to sums
    return x;
}

// -log p_t and the smoothed loss of one row.
struct Loss {
    Real nll, smoothed;
};

__device__ inline Loss row_loss(Part row, Real z_target, long long width, Real smoothing) {
    Real log_sum = log(row.sum);  // log p_v = (z_v - largest) - log_sum
    Real nll = log_sum + (row.largest - z_target);
    Real mean = log_sum + (row.largest - row.total / width);  // of -log p_v
    Real of_all = smoothing > 0 ? smoothing * mean : 0;  // the mean is infinite where a logit is
    return {nll, (1 - smoothing) * nll + of_all};
}

// p = softmax(z): loss = share (-(1 - eps) log p_t - eps mean(log p)), nll = share (-log p_t),
// gradient = share (p - q). Padding has loss, nll and gradient 0. The gradient may take the place
// of the logits.
// 8 bytes an entry: the second reading of a row finds it on the chip, for some ten thousand words.
extern "C" __global__ void cross_entropy(const Real* z, const int* __restrict__ targets,
                                         Real* gradient, Real* __restrict__ losses,
                                         Real* __restrict__ nlls, long long width,
                                         Real smoothing, Real share, int pad_id) {
    long long row = blockIdx.x;
    int target = targets[row];
    z += row * width;
    gradient += row * width;
    if (target == pad_id) {  // so for the whole block
        for (long long c = 4 * threadIdx.x; c < width; c += 4 * THREADS) {
            store(gradient, c, width, Four{});
        }
        if (threadIdx.x == 0) losses[row] = nlls[row] = 0;
        return;
    }
    Real z_target = z[target];  // read before anybody writes a gradient in its place
    Part whole = whole_row(z, width);
    Real inverse = 1 / whole.sum, uniform = smoothing / width;
    for (long long c = 4 * threadIdx.x; c < width; c += 4 * THREADS) {
        Four v = load(z, c, width);
        for (int i = 0; i < 4; i++) {
            Real q = (c + i == target ? 1 - smoothing : 0) + uniform;
            v.value[i] = share * (exp(v.value[i] - whole.largest) * inverse - q);
        }
        store(gradient, c, width, v);
    }
    if (threadIdx.x == 0) {
        Loss loss = row_loss(whole, z_target, width, smoothing);
        losses[row] = share * loss.smoothed;
        nlls[row] = share * loss.nll;
    }
}

// Two passes z (2, rows, width) over the same targets, p and r their softmax:
// loss = share ((loss of p + loss of r) / 2 + kappa / 2 sum((p - r) a)), a = log p - log r, and the
// gradients of both, in place.
// 8 bytes an entry.
extern "C" __global__ void cross_entropy_of_two(Real* __restrict__ z,
                                                const int* __restrict__ targets,
                                                Real* __restrict__ losses,
                                                Real* __restrict__ nlls, long long rows,
                                                long long width, Real smoothing, Real share,
                                                Real kappa, int pad_id) {
    long long row = blockIdx.x;
    int target = targets[row];
    Real* z_p = z + row * width;
    Real* z_r = z_p + rows * width;
    if (target == pad_id) {  // so for the whole block
        for (long long c = 4 * threadIdx.x; c < width; c += 4 * THREADS) {
            store(z_p, c, width, Four{});
            store(z_r, c, width, Four{});
        }
        if (threadIdx.x == 0) losses[row] = nlls[row] = 0;
        return;
    }
    Real target_p = z_p[target], target_r = z_r[target];
    Part whole_p = whole_row(z_p, width), whole_r = whole_row(z_r, width);
    Real inverse_p = 1 / whole_p.sum, inverse_r = 1 / whole_r.sum;

    // Of a, under p and under r. That log_p and log_r below lack a constant each, the logarithm of
    // their sum, adds the same to a and to both means, and nothing to what is made of them.
    Real mean_p = 0, mean_r = 0;
    for (long long c = 4 * threadIdx.x; c < width; c += 4 * THREADS) {
        Four u = load(z_p, c, width, LOWEST), v = load(z_r, c, width, LOWEST);
        for (int i = 0; i < 4; i++) {  // past the end both are LOWEST: p, r and a are 0
            Real log_p = u.value[i] - whole_p.largest, log_r = v.value[i] - whole_r.largest;
            Real a = log_p - log_r;
            mean_p += exp(log_p) * inverse_p * a;
            mean_r += exp(log_r) * inverse_r * a;
        }
    }
    mean_p = block_sum(mean_p);
    mean_r = block_sum(mean_r);

    Real uniform = smoothing / width, half = share / 2;
    for (long long c = 4 * threadIdx.x; c < width; c += 4 * THREADS) {
        Four u = load(z_p, c, width), v = load(z_r, c, width);
        for (int i = 0; i < 4; i++) {
            Real log_p = u.value[i] - whole_p.largest, log_r = v.value[i] - whole_r.largest;
            Real a = log_p - log_r;
            Real p = exp(log_p) * inverse_p, r = exp(log_r) * inverse_r;
            Real q = (c + i == target ? 1 - smoothing : 0) + uniform;
            u.value[i] = half * (p - q + kappa * (p * (a - mean_p) + p - r));
            v.value[i] = half * (r - q + kappa * (r * (mean_r - a) + r - p));
        }
        store(z_p, c, width, u);
        store(z_r, c, width, v);
    }
    if (threadIdx.x == 0) {
        Loss loss_p = row_loss(whole_p, target_p, width, smoothing);
        Loss loss_r = row_loss(whole_r, target_r, width, smoothing);
        losses[row] = half * (loss_p.smoothed + loss_r.smoothed + kappa * (mean_p - mean_r));
        nlls[row] = half * (loss_p.nll + loss_r.nll);
    }
}
