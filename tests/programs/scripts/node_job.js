// SPDX-License-Identifier: Apache-2.0
// Node.js: compiled at run time, with threads of its own and a worker.
const { Worker, isMainThread, parentPort } = require('node:worker_threads');

function primes(limit) {
  const found = [];
  for (let n = 2; found.length < limit; n++) {
    if (found.every((prime) => prime * prime > n || n % prime !== 0)) found.push(n);
  }
  return found;
}

if (isMainThread) {
  const last = primes(3000).pop();
  new Worker(__filename).on('message', (text) => {
    console.log(JSON.stringify({ last, worker: text }));
    process.exitCode = 3;
  });
} else {
  parentPort.postMessage(primes(2000).pop());
}
