// Calls a node's API through the official WebAssembly libraries. argv: library (sdk, client), kind of address
// (node, permanode) and address. Reads a JSON list of [method, ...arguments]; answers with a list of what each
// call gave, {error} where it threw. "getMessage.raw": a method of what the first one gives, or is. {utf8: text}
// is an argument of bytes; bytes become hex.
"use strict";
const fs = require("fs");

const [, , library, kind, address] = process.argv;

async function connected() {
    if (library === "sdk") {
        const { Client } = require("@iota/sdk-wasm/node");
        return new Client({ nodes: [address] });
    }
    const { ClientBuilder } = require("@iota/client-wasm/node");
    const builder = new ClientBuilder();
    return (kind === "node" ? builder.node(address) : builder.permanode(address).node(new URL(address).origin)).build();
}

function plain(_, value) {
    if (value instanceof Uint8Array) {
        return Buffer.from(value).toString("hex");
    }
    return value instanceof Set ? [...value] : value;
}

const argument = (one) => (one !== null && typeof one === "object" && "utf8" in one ? Buffer.from(one.utf8) : one);

async function call(client, [method, ...given]) {
    try {
        const names = method.split(".");
        const last = names.pop();
        let target = client;
        for (const name of names) {
            target = typeof target[name] === "function" ? target[name]() : target[name];
        }
        return await target[last](...given.map(argument));
    } catch (error) {
        return { error: String(error.message || error.error || JSON.stringify(error)) };
    }
}

async function main() {
    const client = await connected();
    const answers = [];
    for (const one of JSON.parse(fs.readFileSync(0, "utf8"))) {
        answers.push((await call(client, one)) ?? null);
    }
    return answers;
}

main().then((answers) => {
    process.stdout.write(`${JSON.stringify(answers, plain)}\n`, () => process.exit(0));
});
