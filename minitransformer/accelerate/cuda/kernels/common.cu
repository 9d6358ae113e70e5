// What all kernels share. They are compiled together, once with Real = float, once with double.
//
// Shapes: arrays are contiguous matrices (rows, width). A thread takes four neighbouring entries of
// a row at a time: one load of 16 bytes, and one block of random bits.
//
// Layouts of threads:
//   elementwise  x: fours of columns, y: rows, both in strides of the grid
//   row          x: the 1 to 32 lanes of one row, within a warp; y: rows of the block
//
// Bytes moved are counted for float, between the GPU's memory and its chip, for each entry.

typedef unsigned long long u64;

constexpr int THREADS = 256;  // of a block, in every launch
// Stands for -infinity, whose difference with itself is NaN.
constexpr Real LOWEST = static_cast<Real>(sizeof(Real) == 4 ? -3e38 : -1e308);

struct alignas(4 * sizeof(Real)) Four {
    Real value[4];
};

// Entries column to column + 3 of a row; past its end there is `fill`.
__device__ inline Four load(const Real* row, long long column, long long width, Real fill = 0) {
    const Real* from = row + column;
    if (column + 4 <= width && reinterpret_cast<u64>(from) % sizeof(Four) == 0) {
        return *reinterpret_cast<const Four*>(from);
    }
    Four x;
    for (int i = 0; i < 4; i++) x.value[i] = column + i < width ? from[i] : fill;
    return x;
}

__device__ inline void store(Real* row, long long column, long long width, const Four& x) {
    Real* to = row + column;
    if (column + 4 <= width && reinterpret_cast<u64>(to) % sizeof(Four) == 0) {
        *reinterpret_cast<Four*>(to) = x;
        return;
    }
    for (int i = 0; i < 4 && column + i < width; i++) to[i] = x.value[i];
}

// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011): the words of counter_generator.philox.
struct Bits {
    unsigned word[4];
};

__device__ inline Bits philox(u64 key, u64 draw, u64 block) {
    unsigned key_0 = key, key_1 = key >> 32;
    unsigned c_0 = block, c_1 = block >> 32, c_2 = draw, c_3 = draw >> 32;
    for (int round = 0; round < 10; round++) {
        u64 product_0 = 0xD2511F53ull * c_0, product_2 = 0xCD9E8D57ull * c_2;
        c_0 = static_cast<unsigned>(product_2 >> 32) ^ c_1 ^ key_0;
        c_1 = product_2;
        c_2 = static_cast<unsigned>(product_0 >> 32) ^ c_3 ^ key_1;
        c_3 = product_0;
        key_0 += 0x9E3779B9;
        key_1 += 0xBB67AE85;
    }
    return {{c_0, c_1, c_2, c_3}};
}

// What dropout multiplies four entries by: 0, or scale where 24 random bits reach the threshold.
// The bits depend on nothing but key, draw and place, so a backward draws them again.
__device__ inline Four dropout_factors(u64 key, u64 draw, unsigned threshold, Real scale,
                                       long long row, long long column, long long width) {
    Four factor = {{1, 1, 1, 1}};
    if (threshold == 0) return factor;
    Bits bits = philox(key, draw, row * ((width + 3) / 4) + column / 4);
    for (int i = 0; i < 4; i++) factor.value[i] = bits.word[i] >> 8 >= threshold ? scale : 0;
    return factor;
}

// Sum and maximum over the lanes of a row. Every thread of the warp has to call them.
__device__ inline Real row_sum(Real x) {
    for (int offset = blockDim.x / 2; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, offset);
    }
    return x;
}

__device__ inline Real row_max(Real x) {
    for (int offset = blockDim.x / 2; offset > 0; offset /= 2) {
        Real other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = other > x ? other : x;
    }
    return x;
}

// The sum of `x` over threadIdx.y, for the threads with y = 0. Every thread of the block has to
// call it. It adds in a fixed order, so that a sum has the same bits in every run.
__device__ inline Four sum_over_y(Four x) {
    __shared__ Four terms[THREADS];
    terms[threadIdx.y * blockDim.x + threadIdx.x] = x;
    __syncthreads();
    if (threadIdx.y == 0) {
        for (unsigned y = 1; y < blockDim.y; y++) {
            Four term = terms[y * blockDim.x + threadIdx.x];
            for (int i = 0; i < 4; i++) x.value[i] += term.value[i];
        }
    }
    __syncthreads();  // the next call writes to terms
    return x;
}
