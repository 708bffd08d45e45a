// Who nodemailer's addressparser says a message is from.
//
//   stdin: a JSON list of From fields, unfolded   stdout: per field {way: [address]}
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const module = createRequire(process.execPath)('nodemailer/lib/addressparser');
const parse = module.default ?? module;

const shown = JSON.parse(readFileSync(0, 'utf8')).map((field) => ({
  addressparser: parse(field, { flatten: true }).map(({ address }) => address),
}));
process.stdout.write(JSON.stringify(shown));
