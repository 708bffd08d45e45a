// The OAuth half of the test mailbox provider: the npm package `oidc-provider`, configured.
// What is ours here is only what a human would do (log in, consent) and a few routes under
// /test/ for what a user or the passing of time does to a connected mailbox.
//
//   node oidc-provider.mjs PORT        (0 takes a free port; prints {"port":N} when ready)
//
// Environment: CLIENT_ID, CLIENT_SECRET, REDIRECT_URIS (separated by spaces), RESOURCE_ID and
// RESOURCE_SECRET (the mail server, which introspects), CLIENT_AUTH_METHOD (client_secret_post),
// ACCESS_TOKEN_SECONDS (3600). Ends when its stdin closes.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages lie beside the Node that runs this, not beside this file.
const packages = createRequire(process.execPath);
const { default: Provider, interactionPolicy } = await import(
  pathToFileURL(packages.resolve('oidc-provider'))
);

const DAY_SECONDS = 24 * 60 * 60;
const HOST = '127.0.0.1';

function required(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} must be set`);
  }
  return value;
}

// What `oidc-provider` keeps, by model and id. Its own memory adapter forgets the oldest
// entries and can't be searched, which /test/withdraw and /test/lapse need.
const models = new Map();

function stored(model) {
  if (!models.has(model)) {
    models.set(model, new Map());
  }
  return models.get(model);
}

class Storage {
  constructor(model) {
    this.entries = stored(model);
  }

  async upsert(id, payload, expiresIn) {
    const expiresAt = expiresIn === undefined ? Infinity : Date.now() + expiresIn * 1000;
    this.entries.set(id, { payload, expiresAt });
  }

  async find(id) {
    const entry = this.entries.get(id);
    if (entry && entry.expiresAt <= Date.now()) {
      this.entries.delete(id);
      return undefined;
    }
    return entry?.payload;
  }

  async findByUid(uid) {
    for (const { payload } of this.entries.values()) {
      if (payload.uid === uid) {
        return payload;
      }
    }
    return undefined;
  }

  async findByUserCode() {
    return undefined;
  }

  async consume(id) {
    this.entries.get(id).payload.consumed = Math.floor(Date.now() / 1000);
  }

  async destroy(id) {
    this.entries.delete(id);
  }

  async revokeByGrantId(grantId) {
    revokeGrant(grantId);
  }
}

function revokeGrant(grantId) {
  for (const model of ['AccessToken', 'RefreshToken', 'AuthorizationCode']) {
    for (const [id, { payload }] of stored(model)) {
      if (payload.grantId === grantId) {
        stored(model).delete(id);
      }
    }
  }
}

function withdraw(account) {
  let withdrawn = 0;
  for (const [grantId, { payload }] of stored('Grant')) {
    if (payload.accountId === account) {
      revokeGrant(grantId);
      stored('Grant').delete(grantId);
      withdrawn += 1;
    }
  }
  return withdrawn;
}

function lapse() {
  const lapsed = stored('AccessToken').size;
  stored('AccessToken').clear();
  return lapsed;
}

// A browser that is logged in as somebody else must log in again.
function interactionsPolicy() {
  const policy = interactionPolicy.base();
  policy.get('login').checks.add(
    new interactionPolicy.Check('another_account', 'another account was asked for', ({ oidc }) => {
      const asked = accountOf(oidc.params);
      return asked !== undefined && oidc.session.accountId !== asked
        ? interactionPolicy.Check.REQUEST_PROMPT
        : interactionPolicy.Check.NO_NEED_TO_PROMPT;
    }),
  );
  return policy;
}

function accountOf(params) {
  return params.login_hint?.toLowerCase();
}

function configuration() {
  return {
    adapter: Storage,
    clients: [
      {
        client_id: required('CLIENT_ID'),
        client_secret: required('CLIENT_SECRET'),
        redirect_uris: required('REDIRECT_URIS').split(' '),
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: process.env.CLIENT_AUTH_METHOD ?? 'client_secret_post',
      },
      {
        client_id: required('RESOURCE_ID'),
        client_secret: required('RESOURCE_SECRET'),
        redirect_uris: [],
        grant_types: [],
        response_types: [],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    scopes: ['openid', 'email', 'offline_access', 'mail.send'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    findAccount: (_context, account) => ({
      accountId: account,
      claims: () => ({ sub: account, email: account, email_verified: true }),
    }),
    pkce: { required: () => true },
    rotateRefreshToken: true,
    features: {
      devInteractions: { enabled: false },
      introspection: { enabled: true },
      revocation: { enabled: true },
      userinfo: { enabled: true },
    },
    interactions: {
      policy: interactionsPolicy(),
      url: (_context, interaction) => `/interaction/${interaction.uid}`,
    },
    ttl: {
      AccessToken: Number(process.env.ACCESS_TOKEN_SECONDS ?? 3600),
      AuthorizationCode: 60,
      Grant: DAY_SECONDS,
      IdToken: 3600,
      Interaction: 3600,
      RefreshToken: DAY_SECONDS,
      Session: DAY_SECONDS,
    },
    cookies: { keys: [randomUUID()] },
    jwks: {
      keys: [
        {
          ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
          use: 'sig',
          alg: 'RS256',
        },
      ],
    },
  };
}

// Logs in as `login_hint` and grants all that is asked for; an account that begins with "deny"
// presses the other button.
async function interact(provider, request, response) {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  const account = accountOf(params);
  if (!account) {
    answer(response, 400, { error: 'the request has no login_hint, so nobody knows who logs in' });
    return;
  }
  let result;
  if (account.startsWith('deny')) {
    result = { error: 'access_denied', error_description: 'the user refused' };
  } else if (prompt.name === 'login') {
    result = { login: { accountId: account } };
  } else {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope);
    result = { consent: { grantId: await grant.save() } };
  }
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

function answer(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

let provider;
let refreshes = 0;

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, `http://${HOST}`);
  try {
    if (pathname.startsWith('/interaction/')) {
      await interact(provider, request, response);
      return;
    }
    switch (`${request.method} ${pathname}`) {
      case 'POST /test/withdraw':
        answer(response, 200, { withdrawn: withdraw(searchParams.get('account')?.toLowerCase()) });
        break;
      case 'POST /test/lapse':
        answer(response, 200, { lapsed: lapse() });
        break;
      case 'GET /test/refreshes':
        answer(response, 200, { refreshes });
        break;
      default:
        provider.callback()(request, response);
    }
  } catch (error) {
    console.error(error);
    answer(response, 500, { error: String(error) });
  }
});

process.stdin.on('close', () => process.exit(0)).resume();

server.listen(Number(process.argv[2] ?? 0), HOST, () => {
  const { port } = server.address();
  provider = new Provider(`http://${HOST}:${port}`, configuration());
  provider.on('grant.success', ({ oidc }) => {
    if (oidc.params.grant_type === 'refresh_token') {
      refreshes += 1;
    }
  });
  provider.on('server_error', (_context, error) => console.error(error));
  console.log(JSON.stringify({ port }));
});
