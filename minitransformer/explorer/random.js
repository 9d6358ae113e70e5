// Random numbers of a seed, the same as NumPy's: default_rng(seed).random(), one after the other.
// So a seed draws here what it draws in `minitransformer generate --seed`, but for rounding in the
// logits, and where the page sees less of a beginning that is long, see tasks.js.

const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n; // of PCG64

// Numbers in [0, 1): PCG64, which SeedSequence has begun.
export function* uniform_numbers(seed) {
  const words = seed_sequence(seed);
  const of_128 = (i) => (wide(words, i) << 64n) | wide(words, i + 2);
  const increment = BigInt.asUintN(128, (of_128(4) << 1n) | 1n);
  const next = (state) => BigInt.asUintN(128, state * MULTIPLIER + increment);
  let state = next(increment + of_128(0)); // a step from 0 gives the increment
  for (;;) {
    state = next(state);
    const folded = BigInt.asUintN(64, (state >> 64n) ^ state);
    const turn = state >> 122n;
    const bits = BigInt.asUintN(64, (folded >> turn) | (folded << (64n - turn)));
    yield Number(bits >> 11n) / 2 ** 53;
  }
}

// Words i and i + 1, the lower one first, as one of 64 bits.
function wide(words, i) {
  return BigInt(words[i]) | (BigInt(words[i + 1]) << 32n);
}

// NumPy's SeedSequence(seed).generate_state(8): a pool of four words, each of which all others have
// been mixed into, and hashes of it. The seed is a whole number below 2³².
function seed_sequence(seed) {
  let constant = 0x43b0d7e5;
  const hash = (word) => {
    const mixed = word ^ constant;
    constant = Math.imul(constant, 0x931e8875);
    const product = Math.imul(mixed, constant);
    return (product ^ (product >>> 16)) >>> 0;
  };
  const mix = (a, b) => {
    const difference = Math.imul(a, 0xca01f9dd) - Math.imul(b, 0x4973f715);
    return (difference ^ (difference >>> 16)) >>> 0;
  };
  const pool = [seed, 0, 0, 0].map(hash);
  for (let from = 0; from < pool.length; from++) {
    for (let to = 0; to < pool.length; to++) {
      if (from !== to) {
        pool[to] = mix(pool[to], hash(pool[from]));
      }
    }
  }
  let other = 0x8b51f9dd;
  return Array.from({ length: 8 }, (_, i) => {
    const mixed = pool[i % pool.length] ^ other;
    other = Math.imul(other, 0x58f38ded);
    const product = Math.imul(mixed, other);
    return (product ^ (product >>> 16)) >>> 0;
  });
}
