import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import nodemailer from "nodemailer";
import MailComposer from "nodemailer/lib/mail-composer/index.js";

function setting(name, otherwise) {
  const value = process.env[name] ?? otherwise;
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

const from = setting("MAILGATE_FROM"); // the address of a connected mailbox: it chooses the mailbox
const transport = nodemailer.createTransport({
  host: setting("MAILGATE_SMTP_HOST"),
  port: Number(setting("MAILGATE_SMTP_PORT", "587")),
  requireTLS: true,
  auth: { user: setting("MAILGATE_APP_ID"), pass: setting("MAILGATE_SEND_KEY") },
});

// The same bytes each time, so that the Idempotency-Key in them holds.
async function submit(raw, to) {
  for (let attempt = 0; attempt < 6; attempt++) {
    try {
      const { response } = await transport.sendMail({ envelope: { from, to }, raw });
      return response;
    } catch (error) {
      if (error.responseCode >= 500) throw error; // refused: the same message would be refused again
    }
    await sleep(2 ** attempt * 1000);
  }
  throw new Error("not taken yet: submit the same bytes again later");
}

const message = new MailComposer({
  from,
  to: "bob@example.com",
  subject: "Hello",
  text: "It works.",
  headers: { "Idempotency-Key": randomUUID() },
});
console.log(await submit(await message.compile().build(), ["bob@example.com"])); // 250 2.0.0 log_… sent via …
