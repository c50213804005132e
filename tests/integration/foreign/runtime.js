// SPDX-License-Identifier: MIT
// node: exceptions, generators, promises, garbage: foreign_runtimes.sh.
'use strict';
const fs = require('fs');
const [mode, stop] = process.argv.slice(2);
function fails(n) { if (n % 2) throw new Error(String(n)); return n; }
function caught(n) { try { return fails(n); } catch (e) { return -Number(e.message); } }
function* numbers(n) { for (let i = 0; i < n; i++) yield i; }
async function round() {
	let sum = 0;
	for (let i = 0; i < 300; i++) {
		sum += i * caught(i);
		for (const x of numbers(5)) sum += x;
		sum += await new Promise((resolve) => setImmediate(resolve, i));
		sum += JSON.parse(JSON.stringify({ a: [i, 'x'.repeat(100)] })).a[0];
	}
	return sum;
}
console.log('ready');
process.stdin.once('data', async () => {
	const sum = await round();
	for (let n = 1; mode === 'loop' ? !fs.existsSync(stop) : n < 5; n++)
		if (await round() !== sum) { console.log('wrong'); process.exit(70); }
	console.log('sum', sum);
	process.exit(0);
});
