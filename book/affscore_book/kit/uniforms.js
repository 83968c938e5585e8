/** `count` numbers between -1 and 1: a counter through the finaliser of MurmurHash3, the same in affinity1d.py. */
export function uniforms(stream, count) {
  return Float64Array.from({ length: count }, (_, k) => {
    let bits = Math.imul(stream * 65536 + k + 1, 0x9e3779b9);
    bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
    return ((bits ^ (bits >>> 16)) >>> 0) / 2147483648 - 1 + 1 / 4294967296;
  });
}
