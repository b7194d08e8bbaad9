// Calls the node API at argv[2] through the official library of argv[3] (chrysalis, stardust). Reads a JSON
// list of [method, ...arguments]; answers with a list of what each call gave, {error} where it threw. Bytes
// become hex.
"use strict";
const fs = require("fs");

const [, , endpoint, protocol] = process.argv;
const { SingleNodeClient } = require(`iota-${protocol}`);
const client = new SingleNodeClient(endpoint);

function plain(_, value) {
    return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
}

async function call([method, ...given]) {
    try {
        return await client[method](...given);
    } catch (error) {
        return { error: error.message };
    }
}

async function main() {
    const answers = [];
    for (const one of JSON.parse(fs.readFileSync(0, "utf8"))) {
        answers.push(await call(one));
    }
    return answers;
}

main().then((answers) => console.log(JSON.stringify(answers, plain)));
