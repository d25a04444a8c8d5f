// In a worker: makes the page of the files, which the module reads in pieces. Answers { progress }, a part of 1, and at last
// { page } or { error }.
onmessage = async ({ data: { module, exporter, files } }) => {
  const reader = new FileReaderSync();
  const whole = files.reduce((sum, file) => sum + file.size, 0);
  let memory, told = 0;
  const read = (number, offset, address, length) => {
    const from = Number(offset);
    try {
      const bytes = new Uint8Array(reader.readAsArrayBuffer(files[number].slice(from, from + length)));
      new Uint8Array(memory.buffer, address, bytes.length).set(bytes);
      // Steps of a hundredth. Another reading of the file begins anew.
      const part = from / whole;
      if (Math.abs(part - told) >= 0.01) postMessage({ progress: told = part });
      return bytes.length;
    } catch { return -1; }
  };
  try {
    const { instance } = await WebAssembly.instantiate(module, { worker: { read } });
    const { buffer, make, result, result_length } = instance.exports;
    ({ memory } = instance.exports);
    const input = new TextEncoder().encode([exporter, ...files.map(file => file.name.replace(/[\r\n]/g, " "))].join("\n"));
    // The address first: memory may grow, which replaces memory.buffer.
    const address = buffer(input.length);
    new Uint8Array(memory.buffer, address, input.length).set(input);
    const isPage = make();
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, result(), result_length()));
    postMessage(isPage ? { page: text } : { error: text });
  } catch (error) {
    postMessage({ error: `${files[0].name} cannot be read: the reader failed (${error.message}). It may take more memory than a browser gives: \`dipc convert FILE -f html\` makes the same page.` });
  }
};
