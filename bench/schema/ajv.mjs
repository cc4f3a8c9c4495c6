// SPDX-License-Identifier: Apache-2.0
//
// Times AJV as Blaze times itself: node ajv.mjs MODULES SCHEMA INSTANCES.jsonl SECONDS FORMATS
//
// Instances are parsed beforehand. After a warm-up over all of them each instance is validated
// again and again, in a few batches, and the mean time of a call in the fastest batch is printed
// for each, as JSON. The clock is read around a whole batch, not around each call.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const [modules, schemaFile, instancesFile, secondsText, formats] = process.argv.slice(2);
const require = createRequire(modules + '/');
const schema = JSON.parse(readFileSync(schemaFile, 'utf8'));
const instances = readFileSync(instancesFile, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
const seconds = Number(secondsText);

const is2020 = /2020-12/.test(schema.$schema);
const Ajv = require(is2020 ? 'ajv/dist/2020' : 'ajv');
const AjvClass = Ajv.default ?? Ajv;
const assertFormats = formats === 'true';
// multipleOfPrecision: without it AJV says that 1.13 is no multiple of 0.01.
const ajv = new AjvClass({ strict: false, validateFormats: assertFormats, multipleOfPrecision: 9 });
if (assertFormats) {
    const addFormats = require('ajv-formats');
    (addFormats.default ?? addFormats)(ajv);
}

const now = () => Number(process.hrtime.bigint());
const compileStart = now();
const validate = ajv.compile(schema);
const compileNs = now() - compileStart;

function pass() {
    let valid = 0;
    for (const instance of instances) valid += validate(instance) ? 1 : 0;
    return valid;
}

function repeat(instance, times) {
    let valid = 0;
    const start = now();
    for (let i = 0; i < times; i++) valid += validate(instance) ? 1 : 0;
    return [now() - start, valid];
}

const warmUntil = now() + 0.3e9;
let passes = 0;
let passStart = now();
let passNs = Infinity;
while (passes < 3 || now() < warmUntil) {
    passStart = now();
    pass();
    passNs = Math.min(passNs, now() - passStart);
    passes++;
}

const BATCHES = 5;
const times = Math.max(5, Math.round((seconds * 1e9) / passNs / BATCHES));
const each = [];
let verdicts = '';
for (const instance of instances) {
    let best = Infinity;
    let valid = 0;
    for (let batch = 0; batch < BATCHES; batch++) {
        const [ns, accepted] = repeat(instance, times);
        best = Math.min(best, ns / times);
        valid += accepted;
    }
    each.push(best);
    verdicts += valid === times * BATCHES ? '1' : '0';
}
console.log(JSON.stringify({ each_ns: each, compile_us: compileNs / 1000, verdicts }));
