// SPDX-License-Identifier: Apache-2.0
//
// Times AJV: node ajv.mjs MODULES SCHEMA INSTANCES.jsonl SECONDS FORMATS
//
// Instances are parsed beforehand. After a warm-up they are validated one after the other, in many
// passes; the mean time of a call in the fastest pass is printed, as JSON. The clock is read around
// a whole pass, not around each call.

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

function fastestPass(untilNs) {
    let best = Infinity;
    for (let passes = 0; passes < 3 || now() < untilNs; passes++) {
        const start = now();
        pass();
        best = Math.min(best, now() - start);
    }
    return best;
}

fastestPass(now() + 0.3e9); // warms up
const ns = fastestPass(now() + seconds * 1e9) / instances.length;
const verdicts = instances.map((instance) => (validate(instance) ? '1' : '0')).join('');
console.log(JSON.stringify({ ns, compile_us: compileNs / 1000, verdicts }));
