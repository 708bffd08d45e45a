import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

function setting(name) {
  if (!process.env[name]) throw new Error(`${name} is not set`);
  return process.env[name];
}

async function send(key, fields) {
  const request = {
    method: "POST",
    headers: {
      "X-Send-Key": setting("MAILGATE_SEND_KEY"),
      "Content-Type": "application/json",
      "Idempotency-Key": key,
    },
    body: JSON.stringify({ pk: setting("MAILGATE_PK"), ...fields }),
  };
  const url = `${setting("MAILGATE_URL")}/send`;
  for (let attempt = 0; attempt < 6; attempt++) {
    let wait = 2 ** attempt;
    let response, answer;
    try {
      response = await fetch(url, { ...request, signal: AbortSignal.timeout(60_000) });
      answer = await response.text();
    } catch {
      answer = undefined; // no answer came, or half of one
    }
    if (answer !== undefined) {
      if (response.ok) return JSON.parse(answer);
      if (![409, 429, 500, 503, 504].includes(response.status)) {
        throw new Error(`refused, don't ask again: ${response.status} ${answer}`);
      }
      wait = Number(response.headers.get("Retry-After")) || wait;
    }
    await sleep(wait * 1000);
  }
  throw new Error(`no answer: ask again later, with the same fields and the key ${key}`);
}

// One key for each message: keep it with the message until there is an answer.
const answer = await send(randomUUID(), { to: "bob@example.com", subject: "Hello", body: "It works." });
console.log(answer.status, answer.log_id); // sent; or failed_temp, and Mailgate tries again by itself
