// Enough of CUDA to run a kernel's very source on a CPU, as C++.
//
// The threads of a block are fibers that take turns on one thread of the host, each running until
// it meets a barrier; the blocks run one after the other. So a run repeats itself exactly, and a
// barrier that some thread never reaches is found at once instead of hanging. A warp is 32
// neighbouring fibers, and a shuffle is an exchange through memory between two barriers.
//
// Built with -fsanitize=thread, every fiber is a thread to the sanitizer, and only barriers order
// what they do: a barrier that is missing in a kernel is a data race. Built with
// -fsanitize=address, every access to an array or to shared memory is checked.

#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
extern "C" void *__tsan_get_current_fiber();
extern "C" void *__tsan_create_fiber(unsigned flags);
extern "C" void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define __global__
#define __device__ static
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define __shared__ static
#else
// All in one place, so that a block can find it full of garbage, as on a GPU.
#define __shared__ static __attribute__((section("cuda_shared")))
extern "C" char __start_cuda_shared[] __attribute__((weak));
extern "C" char __stop_cuda_shared[] __attribute__((weak));
#endif

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

// What a launch needs is inline: one of each in a process, however many libraries of kernels it has.
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

using std::exp;
using std::log;
using std::sqrt;

namespace shim {

// What the fibers' own machinery does is no access of the kernel's.
#define UNSEEN __attribute__((no_sanitize("thread")))

constexpr unsigned WARP = 32, MOST_THREADS = 1024;
constexpr size_t STACK = 128 << 10;

struct Barrier {
    unsigned expected = 0, arrived = 0, generation = 0;
    char passed[2];  // what is released and acquired, by turns: who is late at one use of the
                     // barrier must not see what others did before the next
};

// A place to go on from. GCC's own jumps take nanoseconds, swapcontext a call of the system.
struct Place {
    void *registers[5];
    ucontext_t start;  // where to begin, the first time
    bool begun;
    char *stack;
    void *sanitizer;
};

struct Fiber {
    Place place;
    dim3 index;
    Barrier *waiting_at;
    unsigned waiting_for;  // the generation that has to end
    bool done;
};

inline Place scheduler;
inline Fiber fibers[MOST_THREADS];
inline unsigned fibers_made, current;
inline char block_start, block_end;
inline Barrier block_barrier, warp_barriers[MOST_THREADS / WARP];
inline char exchanged[MOST_THREADS][8];
inline void (*body)(void *);
inline void *body_arguments;

// Memory written before somebody releases an object is seen by whoever acquires it afterwards.
inline void release(void *object) {
#ifdef __SANITIZE_THREAD__
    __tsan_release(object);
#endif
}

inline void acquire(void *object) {
#ifdef __SANITIZE_THREAD__
    __tsan_acquire(object);
#endif
}

UNSEEN __attribute__((noinline)) void jump(Place &from, Place &to) {
    if (__builtin_setjmp(from.registers)) return;  // somebody has jumped back
    if (to.begun) __builtin_longjmp(to.registers, 1);
    to.begun = true;
    setcontext(&to.start);
}

UNSEEN inline void go(Place &from, Place &to) {
#ifdef __SANITIZE_ADDRESS__
    void *fake;
    __sanitizer_start_switch_fiber(&fake, to.stack, STACK);
#endif
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(to.sanitizer, 1);  // 1: the switch itself orders nothing
#endif
    jump(from, to);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

// A fiber serves as one thread of every block.
UNSEEN inline void run_fiber() {
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
    // Of the scheduler's stack its upper end is what counts.
    scheduler.stack = static_cast<char *>(const_cast<void *>(bottom)) + size - STACK;
#endif
    for (;;) {
        acquire(&block_start);
        body(body_arguments);
        release(&block_end);
        Fiber &me = fibers[current];
        me.done = true;
        go(me.place, scheduler);
    }
}

UNSEEN inline void make_fiber(Place &place) {
    if (!place.stack) place.stack = static_cast<char *>(malloc(STACK));
#ifdef __SANITIZE_THREAD__
    place.sanitizer = __tsan_create_fiber(0);
#endif
    place.begun = false;
    getcontext(&place.start);
    place.start.uc_stack.ss_sp = place.stack;
    place.start.uc_stack.ss_size = STACK;
    makecontext(&place.start, run_fiber, 0);
}

UNSEEN inline void wait(Barrier &barrier) {
    Fiber &me = fibers[current];
    unsigned generation = barrier.generation;
    release(&barrier.passed[generation % 2]);
    if (++barrier.arrived == barrier.expected) {
        barrier.arrived = 0;
        barrier.generation++;
    } else {
        me.waiting_at = &barrier;
        me.waiting_for = generation;
        go(me.place, scheduler);
        me.waiting_at = nullptr;
    }
    acquire(&barrier.passed[generation % 2]);
}

UNSEEN inline void resume(unsigned i) {
    current = i;
    threadIdx = fibers[i].index;
    go(scheduler, fibers[i].place);
}

// The threads of one block, to their end; returns whether all of them got there.
UNSEEN inline bool run_block() {
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    block_barrier.expected = threads;
    block_barrier.arrived = block_barrier.generation = 0;
    for (unsigned first = 0; first < threads; first += WARP) {
        unsigned rest = threads - first;
        Barrier &warp = warp_barriers[first / WARP];
        warp.expected = rest < WARP ? rest : WARP;
        warp.arrived = warp.generation = 0;
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    for (char *byte = __start_cuda_shared; byte < __stop_cuda_shared; byte++) *byte = -1;  // NaN
#endif
    for (unsigned i = 0; i < threads; i++) {
        Fiber &fiber = fibers[i];
        fiber.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
        fiber.done = false;
        fiber.waiting_at = nullptr;
    }
    release(&block_start);  // the arrays, which the host has written
    for (unsigned left = threads; left > 0;) {
        bool progress = false;
        for (unsigned i = 0; i < threads; i++) {
            Fiber &fiber = fibers[i];
            Barrier *barrier = fiber.waiting_at;
            if (fiber.done || (barrier && barrier->generation == fiber.waiting_for)) continue;
            resume(i);
            progress = true;
            left -= fiber.done;
        }
        if (!progress) {
            fibers_made = 0;  // the present ones are stuck: begin anew
            return false;
        }
    }
    acquire(&block_end);
    return true;
}

// All blocks, the last one first if asked to; returns what went wrong, or null.
UNSEEN inline const char *run_grid(dim3 grid, dim3 block, bool backwards, void (*kernel)(void *),
                                   void *arguments) {
    unsigned threads = block.x * block.y * block.z, blocks = grid.x * grid.y * grid.z;
    if (threads == 0 || threads > MOST_THREADS) return "a block has 1 to 1024 threads";
    if (blocks == 0) return "a grid has at least one block";
    if (grid.y > 65535 || grid.z > 65535) return "a grid has at most 65535 blocks along y and z";
    scheduler.begun = true;
#ifdef __SANITIZE_THREAD__
    scheduler.sanitizer = __tsan_get_current_fiber();
#endif
    for (; fibers_made < threads; fibers_made++) make_fiber(fibers[fibers_made].place);
    blockDim = block;
    gridDim = grid;
    body = kernel;
    body_arguments = arguments;
    for (unsigned i = 0; i < blocks; i++) {
        unsigned b = backwards ? blocks - 1 - i : i;
        blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        if (!run_block()) return "some threads of a block never reach the barrier others wait at";
    }
    return nullptr;
}

inline unsigned linear_index() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// Calls a kernel with the arguments whose addresses CUDA is given.
template <auto kernel>
struct Call;

template <typename... A, void (*kernel)(A...)>
struct Call<kernel> {
    template <size_t... i>
    static void with(void **a, std::index_sequence<i...>) {
        kernel(*static_cast<std::remove_const_t<A> *>(a[i])...);
    }
    static void it(void *a) { with(static_cast<void **>(a), std::index_sequence_for<A...>()); }
};

}  // namespace shim

// What the host calls to launch a kernel; it returns what went wrong, or null.
#define RUN(how, name)                                                                        \
    extern "C" const char *run_##name(const unsigned *g, const unsigned *b, int backwards,    \
                                      void **arguments) {                                     \
        auto call = shim::Call<name>::it;                                                     \
        return shim::how({g[0], g[1], g[2]}, {b[0], b[1], b[2]}, backwards, call, arguments); \
    }
#define RUN_TOGETHER(name) RUN(run_grid, name)

inline void __syncthreads() { shim::wait(shim::block_barrier); }

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int offset) {
    static_assert(sizeof(T) <= 8);
    if (mask != 0xffffffffu) abort();
    unsigned me = shim::linear_index();
    shim::Barrier &warp = shim::warp_barriers[me / shim::WARP];
    memcpy(shim::exchanged[me], &value, sizeof(T));
    shim::wait(warp);
    memcpy(&value, shim::exchanged[me ^ offset], sizeof(T));
    shim::wait(warp);
    return value;
}

// Atomic, as fibers change places at barriers only. To the sanitizer it has to look so, too.
template <typename T>
T atomicAdd(T *target, T value) {
    T before, after;
    __atomic_load(target, &before, __ATOMIC_RELAXED);
    after = before + value;
    __atomic_store(target, &after, __ATOMIC_RELAXED);
    return before;
}
