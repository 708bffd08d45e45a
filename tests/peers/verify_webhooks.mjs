// Verifies webhooks with npm `standardwebhooks`.
//
//   stdin: a JSON array of {secret, raw, headers, body}; raw: the key is the bytes of the secret itself
//   stdout: a JSON array of what came of each: "verified", or why it was refused
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { Webhook } = createRequire(process.execPath)('standardwebhooks');

const verdicts = JSON.parse(readFileSync(0, 'utf8')).map(({ secret, raw, headers, body }) => {
  const webhook = raw ? new Webhook(secret, { format: 'raw' }) : new Webhook(secret);
  try {
    webhook.verify(body, headers);
    return 'verified';
  } catch (error) {
    return error.message;
  }
});
console.log(JSON.stringify(verdicts));
