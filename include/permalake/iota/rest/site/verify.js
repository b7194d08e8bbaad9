// The button of a message's page: fetches its proof, checks it here, and lists what was checked.

import { verify } from "./proof.js";

const MARKS = { true: ["✓", "published", "holds"], false: ["✗", "failed", "does not hold"], null: ["–", "none", "not checked"] };

const button = document.getElementById("verify");
const list = document.getElementById("steps");
const verdict = document.getElementById("verdict");

function element(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = className;
  return made;
}

function line({ text, holds }) {
  const [mark, kind, word] = MARKS[holds];
  const made = element("li", "");
  const pill = element("span", mark, `pill ${kind}`);
  pill.setAttribute("aria-hidden", "true");
  made.append(pill, element("span", ` ${word}: `, "hidden"), element("span", ` ${text}`));
  return made;
}

function shown({ valid, steps }) {
  list.replaceChildren(...steps.map(line));
  const unchecked = steps.some((step) => step.holds === null);
  if (!valid) return "The proof does not hold. The marked step says where it fails.";
  return unchecked ? "The proof holds, but its signatures were not checked." : "The proof holds.";
}

async function run() {
  button.disabled = true;
  verdict.textContent = "Checking…";
  try {
    const answer = await fetch(button.dataset.proof, { headers: { Accept: "application/json" } });
    const body = await answer.json();
    if (answer.ok) {
      const found = await verify(body);
      verdict.textContent = shown(found);
      verdict.className = found.valid ? "pill published" : "pill failed";
    } else {
      verdict.textContent = body.detail ?? `The server answers ${answer.status}.`;
    }
  } catch (error) {
    verdict.textContent = `The proof cannot be fetched: ${error.message}`;
  }
  button.disabled = false;
}

button.addEventListener("click", run);
button.hidden = false;
