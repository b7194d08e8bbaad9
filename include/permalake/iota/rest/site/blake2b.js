// BLAKE2b without a key, from RFC 7693. Its words have 64 bits: a BigUint64Array wraps as the hash wants it.

const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
// Section 2.7: the order of message words, round by round; rounds 10 and 11 repeat 0 and 1.
const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
// Section 3.1: four columns, then four diagonals.
const LANES = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];
const ROUNDS = 12;
const BLOCK = 128;

const rotated = (word, bits) => (word >> bits) | BigInt.asUintN(64, word << (64n - bits));

function mix(v, [a, b, c, d], x, y) {
  v[a] = v[a] + v[b] + x;
  v[d] = rotated(v[d] ^ v[a], 32n);
  v[c] = v[c] + v[d];
  v[b] = rotated(v[b] ^ v[c], 24n);
  v[a] = v[a] + v[b] + y;
  v[d] = rotated(v[d] ^ v[a], 16n);
  v[c] = v[c] + v[d];
  v[b] = rotated(v[b] ^ v[c], 63n);
}

function compress(h, block, counted, isLast) {
  const m = Array.from({ length: 16 }, (_, at) => block.getBigUint64(8 * at, true));
  const v = new BigUint64Array([...h, ...IV]);
  v[12] = v[12] ^ BigInt(counted);
  if (isLast) v[14] = ~v[14];
  for (let round = 0; round < ROUNDS; round++) {
    const order = SIGMA[round % SIGMA.length];
    LANES.forEach((lane, at) => mix(v, lane, m[order[2 * at]], m[order[2 * at + 1]]));
  }
  for (let at = 0; at < 8; at++) h[at] = h[at] ^ v[at] ^ v[at + 8];
}

/** Return the hash of a Uint8Array, of `size` bytes (1 to 64). */
export function blake2b(data, size = 32) {
  const h = new BigUint64Array(IV);
  h[0] = h[0] ^ BigInt(0x01010000 ^ size);
  const blocks = Math.max(1, Math.ceil(data.length / BLOCK));
  for (let at = 0; at < blocks; at++) {
    const block = new Uint8Array(BLOCK);
    block.set(data.subarray(at * BLOCK, (at + 1) * BLOCK));
    compress(h, new DataView(block.buffer), Math.min((at + 1) * BLOCK, data.length), at === blocks - 1);
  }
  const found = new DataView(new ArrayBuffer(64));
  h.forEach((word, at) => found.setBigUint64(8 * at, word, true));
  return new Uint8Array(found.buffer, 0, size);
}
