'use strict';
/* Works until its input ends: garbage, exceptions with stacks, sorting, deoptimisation, timers, files, compression, hashes. Says whether all was right. */
const fs = require('fs'), crypto = require('crypto'), zlib = require('zlib');
let rounds = 0, wrong = 0, ended = false;
process.stdin.on('end', () => { ended = true; }).resume();
function deep(n) { if (n === 0) throw new Error('deep'); return deep(n - 1) + 1; }
function one(x) { return x.a + 1; }
class Named { constructor(i) { this.i = i; } toString() { return 'n' + this.i; } }
function round() {
	const list = [];
	for (let i = 0; i < 500; i++) list.push({ a: i, s: 'x' + i, b: new Named(i) });
	list.sort((p, q) => q.a - p.a);
	if (list[0].a !== 499 || String(list[3].b) !== 'n496') wrong++;
	try { deep(50); wrong++; } catch (e) { if (!/deep/.test(e.stack) || e.stack.split('\n').length < 5) wrong++; }
	if (JSON.parse(JSON.stringify(list)).length !== 500) wrong++;
	if (one(rounds % 3 ? { a: 1 } : { b: 2, a: 1.5 }) < 2) wrong++;
	const text = Buffer.from('hello '.repeat(1000));
	if (!zlib.inflateSync(zlib.deflateSync(text)).equals(text)) wrong++;
	if (crypto.createHash('sha256').update('abc').digest('hex').slice(0, 8) !== 'ba7816bf') wrong++;
	if (!fs.statSync('/').isDirectory() || !fs.readFileSync('/proc/self/stat').length) wrong++;
	if ('aXbXc'.replace(/X/g, (m) => m.toLowerCase()) !== 'axbxc') wrong++;
	if (new Map(list.map((o) => [o.s, o])).get('x7').a !== 7) wrong++;
	if (++rounds % 10 === 0) global.gc();
	const next = () => fs.readFile(__filename, (e, d) => { if (e || !d.length) wrong++; if (ended) console.log('wrong', wrong); else round(); });
	if (rounds % 2) setImmediate(next); else setTimeout(next, 1);
}
console.log('ready');
round();
