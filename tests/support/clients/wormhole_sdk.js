// Calls the API at argv[2] through Wormhole's official SDK. Reads {id: {chain, emitter, sequence}, transaction,
// address} as JSON from the standard input; answers with what each call gave.
"use strict";
const fs = require("fs");
const { Wormhole, UniversalAddress, encoding } = require("@wormhole-foundation/sdk-connect");

const ask = JSON.parse(fs.readFileSync(0, "utf8"));
const wormhole = new Wormhole("Mainnet", [], { api: process.argv[2] });
const id = {
    chain: ask.id.chain,
    emitter: new UniversalAddress(ask.id.emitter),
    sequence: BigInt(ask.id.sequence),
};
const missing = { ...id, sequence: 1n };
const PATIENCE = 3000;

async function main() {
    const hex = (bytes) => (bytes ? encoding.hex.encode(bytes) : null);
    const vaa = await wormhole.getVaa(id, "Uint8Array", PATIENCE);
    const byTransaction = await wormhole.getVaa(ask.transaction, "Uint8Array", PATIENCE);
    const shown = (one) =>
        one && { chain: one.emitterChain, emitter: one.emitterAddress.toString(), sequence: String(one.sequence) };
    return {
        getVaa: shown(vaa),
        getVaaByTransaction: shown(byTransaction),
        hash: vaa && hex(vaa.hash),
        getVaaBytes: hex(await wormhole.getVaaBytes(id, PATIENCE)),
        missing: await wormhole.getVaaBytes(missing, 1),
        getTransactionStatus: await wormhole.getTransactionStatus(id, PATIENCE),
        getTransactionsForAddress: await wormhole.getTransactionsForAddress(ask.address),
        getIsVaaEnqueued: await wormhole.getIsVaaEnqueued(id),
    };
}

main().then((found) => console.log(JSON.stringify(found)));
