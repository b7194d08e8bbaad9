// Reads a JSON line {protocol, kind, raw, body} per object, and answers with what the official library makes of
// it: {body} of the raw bytes and {raw} of the body. An exception becomes {error}.
"use strict";
const { createRequire } = require("module");
const readline = require("readline");

const LIBRARIES = { chrysalis: "iota-chrysalis", stardust: "iota-stardust" };
const KINDS = {
    chrysalis: { block: "Message", output: "Output", milestone: "MilestonePayload" },
    stardust: { block: "Block", output: "Output", milestone: "MilestonePayload" },
};

function library(name) {
    const { ReadStream, WriteStream } = createRequire(require.resolve(name))("@iota/util.js");
    return { iota: require(name), ReadStream, WriteStream };
}

const loaded = Object.fromEntries(Object.entries(LIBRARIES).map(([key, name]) => [key, library(name)]));

function convert({ protocol, kind, raw, body }) {
    const { iota, ReadStream, WriteStream } = loaded[protocol];
    const reader = new ReadStream(Buffer.from(raw, "hex"));
    const found = iota[`deserialize${KINDS[protocol][kind]}`](reader);
    if (reader.hasRemaining(1)) {
        throw new Error("bytes are left");
    }
    const writer = new WriteStream();
    iota[`serialize${KINDS[protocol][kind]}`](writer, body);
    return { body: found, raw: Buffer.from(writer.finalBytes()).toString("hex") };
}

readline.createInterface({ input: process.stdin }).on("line", line => {
    let answer;
    try {
        answer = convert(JSON.parse(line));
    } catch (error) {
        answer = { error: String(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
});
