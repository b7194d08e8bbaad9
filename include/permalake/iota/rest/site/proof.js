// Checks a proof of inclusion step by step. Works in a browser and in Node; asks nobody.

import { blake2b } from "./blake2b.js";

// RFC 7693, appendix A: BLAKE2b-512("abc").
const RFC_7693_ABC =
  "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1" +
  "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923";
const HEX = /^([0-9a-f]{2})*$/;
const DEEPEST = 64;
// Bytes before the number of parents: of a milestone's essence (TIP-8, TIP-29), of a Chrysalis message (TIP-6).
const BEFORE_PARENTS = { chrysalis: 12, stardust: 41 };
const BEFORE_MESSAGE_PARENTS = 8;

/** Return the bytes of hex digits; throws where it is no hex. */
export function bytes(hex) {
  const bare = String(hex).replace(/^0x/, "");
  if (!HEX.test(bare)) throw new Error(`not hex: ${bare.slice(0, 20)}`);
  return Uint8Array.from(bare.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Return lower-case hex digits. */
export const hex = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");

const short = (id) => `${id.slice(0, 8)}…${id.slice(-4)}`;

function joined(prefix, ...parts) {
  const whole = new Uint8Array(1 + parts.reduce((sum, part) => sum + part.length, 0));
  whole[0] = prefix;
  let at = 1;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function parents(data, offset) {
  const found = Array.from({ length: data[offset] }, (_, at) =>
    hex(data.subarray(offset + 1 + 32 * at, offset + 33 + 32 * at)));
  if (!found.length || found.at(-1).length !== 64) throw new Error("the bytes end before the parents do");
  return found;
}

/** Return the hash of a node of a Merkle tree (TIP-4); reports each step and the leaf. */
function climb(node, report, depth = 0) {
  if (depth > DEEPEST) throw new Error(`the proof is deeper than ${DEEPEST}`);
  if (node.value !== undefined) {
    const leaf = blake2b(joined(0, bytes(node.value)));
    report.leaf = hex(bytes(node.value));
    report.add(`The id is a leaf of the tree: BLAKE2b(00 ‖ ${short(report.leaf)}) = ${hex(leaf)}`);
    return leaf;
  }
  if (node.h !== undefined) return bytes(node.h);
  if (node.r === undefined) return climb(node.l, report, depth + 1);
  const [left, right] = [climb(node.l, report, depth + 1), climb(node.r, report, depth + 1)];
  const both = blake2b(joined(1, left, right));
  report.add(`Two nodes give the one above: BLAKE2b(01 ‖ ${short(hex(left))} ‖ ${short(hex(right))}) = ${hex(both)}`);
  return both;
}

function checkTree(proof, essence, report) {
  const root = hex(climb(proof.tree, report));
  report.add(`The leaf of the proof is this ${proof.noun}`, report.leaf === proof.id);
  const offset = BEFORE_PARENTS[proof.protocol];
  const at = offset + 1 + 32 * essence[offset];
  const signed = hex(essence.subarray(at, at + 32));
  report.add(`The tree's root is the one that milestone ${proof.milestone.index} holds: ${signed}`, root === signed);
}

function checkPath(proof, essence, report) {
  let below = proof.id;
  for (const step of proof.path) {
    const data = bytes(step);
    const id = hex(blake2b(data));
    report.add(`Message ${short(id)} has ${short(below)} among its parents`,
      parents(data, BEFORE_MESSAGE_PARENTS).includes(below));
    below = id;
  }
  report.add(`Milestone ${proof.milestone.index} has ${short(below)} among its parents`,
    parents(essence, BEFORE_PARENTS.chrysalis).includes(below));
}

async function isSigned({ key, signature }, message) {
  try {
    const imported = await crypto.subtle.importKey("raw", bytes(key), "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, bytes(signature), message);
  } catch (error) {
    if (error?.name === "NotSupportedError" || !globalThis.crypto?.subtle) return null;
    throw error;
  }
}

async function checkSignatures(proof, essence, report) {
  const { signatures, index } = proof.milestone;
  const { keys, threshold } = proof.trusted;
  const message = blake2b(essence);
  report.add(`The signed bytes of milestone ${index} hash to ${hex(message)}`);
  const verdicts = await Promise.all(signatures.map((one) => isSigned(one, message)));
  if (verdicts.includes(null)) {
    report.add("This browser cannot check Ed25519 signatures: they are not checked", null);
    return;
  }
  const signers = new Set(signatures.map((one) => one.key));
  const known = !keys.length || [...signers].every((key) => keys.includes(key));
  const whose = keys.length ? "keys that this server trusts as the coordinator's" : "the milestone's own keys; none is configured here";
  report.add(`${verdicts.filter(Boolean).length} of ${signatures.length} signatures hold, by ${whose}; ${threshold} are needed`,
    verdicts.every(Boolean) && known && signers.size >= threshold);
}

async function check(proof, report) {
  report.add("BLAKE2b of this page gives the result that RFC 7693 states (appendix A)",
    hex(blake2b(new TextEncoder().encode("abc"), 64)) === RFC_7693_ABC);
  const data = bytes(proof.message);
  report.add(`The ${data.length} bytes of the ${proof.noun} hash to its id: ${proof.id}`, hex(blake2b(data)) === proof.id);
  const essence = bytes(proof.milestone.essence);
  if (proof.tree) checkTree(proof, essence, report);
  else checkPath(proof, essence, report);
  const index = new DataView(essence.buffer).getUint32(0, true);
  report.add(`The signed bytes are of milestone ${index}`, index === proof.milestone.index);
  await checkSignatures(proof, essence, report);
}

/**
 * Check a proof as `explore/message/{id}/proof` answers it.
 *
 * Returns {valid, steps}. A step is {text, holds}: holds is null where nothing was checked. The first false
 * one ends the check.
 */
export async function verify(proof) {
  const steps = [];
  const report = {
    leaf: null,
    add(text, holds = true) {
      steps.push({ text, holds });
      if (holds === false) throw new RangeError("a step does not hold");
    },
  };
  try {
    await check(proof, report);
  } catch (error) {
    if (steps.at(-1)?.holds !== false) steps.push({ text: `The proof cannot be read: ${error.message}`, holds: false });
  }
  return { valid: steps.every((step) => step.holds !== false), steps };
}
