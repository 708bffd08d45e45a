// Submits one message with npm `nodemailer`.
//
//   node nodemailer_client.mjs HOST PORT starttls|implicit CA_FILE LOGIN|PLAIN FROM TO...
//   environment: SMTP_USERNAME, SMTP_PASSWORD   stdin: the message
//
// The exit status is 0 when the message was accepted for every recipient; the dialogue goes to stderr.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const nodemailer = createRequire(process.execPath)('nodemailer');

const [host, port, tls, caFile, mechanism, from, ...to] = process.argv.slice(2);
const raw = readFileSync(0);

const line = (level) => (_entry, text, ...values) => console.error(level, text, ...values);
const transport = nodemailer.createTransport({
  host,
  port: Number(port),
  secure: tls === 'implicit',
  requireTLS: tls === 'starttls',
  tls: { ca: readFileSync(caFile) },
  auth: { user: process.env.SMTP_USERNAME, pass: process.env.SMTP_PASSWORD },
  authMethod: mechanism,
  connectionTimeout: 20_000,
  greetingTimeout: 20_000,
  socketTimeout: 20_000,
  logger: Object.fromEntries(
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, line(level)]),
  ),
  debug: true,
});

try {
  const outcome = await transport.sendMail({ envelope: { from, to }, raw });
  console.error(outcome.response);
  process.exitCode = outcome.rejected.length ? 1 : 0;
} catch (error) {
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
} finally {
  transport.close();
}
