// Reads a recording with the WebAssembly module, piece by piece. `pieces` is anything that `for await` takes, of Uint8Array.
export async function readRecording(wasm, pieces) {
  const { instance } = await WebAssembly.instantiate(wasm);
  const { memory, start, buffer, push, finish, result } = instance.exports;
  start();
  for await (const piece of pieces) {
    // The address first: memory may grow, which replaces memory.buffer.
    const address = buffer(piece.length);
    new Uint8Array(memory.buffer, address, piece.length).set(piece);
    if (!push()) break;
  }
  const length = finish();
  return new TextDecoder().decode(new Uint8Array(memory.buffer, result(), length));
}
