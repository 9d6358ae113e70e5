// What the kernels of CuPy ask of CUDA beyond cuda_shim.h.

#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "cuda_shim.h"

#undef __device__
#define __device__  // methods of classes, too
#define __host__

using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;
using std::signbit;

namespace shim {

template <typename To, typename From>
To same_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

// The threads one after the other, for a kernel in which none waits for another.
inline const char *run_in_turn(dim3 grid, dim3 block, bool, void (*kernel)(void *), void *a) {
    unsigned threads = block.x * block.y * block.z, blocks = grid.x * grid.y * grid.z;
    gridDim = grid;
    blockDim = block;
    for (unsigned b = 0; b < blocks; b++) {
        blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        for (unsigned t = 0; t < threads; t++) {
            threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
            kernel(a);
        }
    }
    return nullptr;
}

}  // namespace shim

#define RUN_IN_TURN(name) RUN(run_in_turn, name)

inline void __syncwarp() { shim::wait(shim::warp_barriers[shim::linear_index() / shim::WARP]); }

template <typename T>
T atomicCAS(T *target, T expected, T value) {
    T before = *target;
    if (before == expected) *target = value;
    return before;
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline float __int_as_float(int x) { return shim::same_bits<float>(x); }
inline int __float_as_int(float x) { return shim::same_bits<int>(x); }
inline double __longlong_as_double(long long x) { return shim::same_bits<double>(x); }
inline long long __double_as_longlong(double x) { return shim::same_bits<long long>(x); }
