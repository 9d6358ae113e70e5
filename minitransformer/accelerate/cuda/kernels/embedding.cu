// layers/embedding.py: the gradient of the table, dweight (V, D), which arrives zeroed.

// With `order` the positions sorted by their id: the block of the first position of an id adds up
// the rows of all its positions, in this order, so that the sum has the same bits in every run.
// Grid: x sorted positions, y fours of columns; block: x fours of columns, y positions of the id.
// 4 bytes an entry of dx, and 4 for each of dweight's rows that occurs.
extern "C" __global__ void embedding_gradient(const Real* __restrict__ dx,
                                              const int* __restrict__ ids,
                                              const long long* __restrict__ order,
                                              Real* __restrict__ dweight, long long positions,
                                              long long width, Real scale) {
    long long first = blockIdx.x;
    int id = ids[order[first]];
    if (first > 0 && ids[order[first - 1]] == id) return;  // so for the whole block
    long long column = 4 * (blockIdx.y * (long long)blockDim.x + threadIdx.x);
    Four sum = {};
    for (long long k = first + threadIdx.y; k < positions; k += blockDim.y) {
        long long position = order[k];
        if (ids[position] != id) break;
        if (column < width) {
            Four v = load(dx + position * width, column, width);
            for (int i = 0; i < 4; i++) sum.value[i] += v.value[i];
        }
    }
    sum = sum_over_y(sum);
    if (threadIdx.y == 0 && column < width) {
        for (int i = 0; i < 4; i++) sum.value[i] *= scale;
        store(dweight + id * width, column, width, sum);
    }
}
