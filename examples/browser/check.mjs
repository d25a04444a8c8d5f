// Reads a recording in pieces as the page does: `node check.mjs MODULE RECORDING`
import { createReadStream, readFileSync } from 'node:fs';
import { readRecording } from './reader.js';

const [module, recording] = process.argv.slice(2);
process.stdout.write(await readRecording(readFileSync(module), createReadStream(recording, { highWaterMark: 4096 })));
