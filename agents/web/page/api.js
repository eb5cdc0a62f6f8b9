// Talking to the server: every call is tried again until an answer comes.

import { sleep } from "/page/dom.js";

const FIRST_WAIT = 400, LONGEST_WAIT = 8000, PATIENCE = 120000;
const AWAY = [502, 503, 504];

/** What the server refuses, with its reason: see errors.py. */
export class Refusal extends Error {
  constructor(reason, message) {
    super(message);
    this.reason = reason;
  }
}

let onConnection = () => {};
let wake = () => {};
addEventListener("online", () => wake());

/** Be told `false` while no answer comes and `true` once one has come. */
export function watchConnection(listener) {
  onConnection = listener;
}

/** A key that names a new game, so that asking twice makes one. */
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function answerOf(path, options) {
  for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      const response = await fetch(path, { ...options, signal: AbortSignal.timeout(PATIENCE) });
      if (!AWAY.includes(response.status)) {
        const answer = await response.json();
        onConnection(true);
        return [response, answer];
      }
    } catch { /* no connection, or an answer that broke off */ }
    onConnection(false);
    // At random, so that many pages do not come back at once.
    await Promise.race([sleep(wait * (0.75 + Math.random() / 2)), new Promise((done) => { wake = done; })]);
  }
}

async function call(path, options = {}) {
  const [response, answer] = await answerOf(path, options);
  if (response.ok) return answer;
  throw new Refusal(answer.error ?? "fault", answer.message ?? response.statusText);
}

export const get = (path) => call(path);

export const post = (path, message) =>
  call(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(message) });
