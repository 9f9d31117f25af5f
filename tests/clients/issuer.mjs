// issuer.mjs - an authorization server (oidc-provider) on a port of this
// machine, whose keys can be exchanged and which can be away
//
// Clients es, rs, ed and admin get JWTs by client_credentials, signed by
// ES256, RS256 and EdDSA; client "page" signs a person in by
// authorization_code, without asking anybody.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const TENANTS = { es: "acme", rs: "acme", ed: "globex", page: "acme",
  lost: "nowhere" };

function makeKeys() {
  const jwk = (alg, type, options) => ({
    ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }),
    alg, use: "sig", kid: randomBytes(6).toString("hex"),
  });
  return [jwk("ES256", "ec", { namedCurve: "P-256" }),
    jwk("RS256", "rsa", { modulusLength: 2048 }), jwk("EdDSA", "ed25519")];
}

function makeProvider(url, audience) {
  const machine = (id) => ({ client_id: id, client_secret: `secret of ${id}`,
    grant_types: ["client_credentials"], redirect_uris: [],
    response_types: [] });
  const provider = new Provider(url, {
    jwks: { keys: makeKeys() },
    cookies: { keys: ["only a test"] },
    scopes: ["sandbox", "sandbox:admin"],
    clients: [...["es", "rs", "ed", "lost", "admin"].map(machine),
      { client_id: "page", token_endpoint_auth_method: "none",
        grant_types: ["authorization_code"], response_types: ["code"],
        redirect_uris: ["http://127.0.0.1/back"] }],
    interactions: { url: (ctx, i) => `/interaction/${i.uid}` },
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: (ctx, token) => ({ tenant: TENANTS[token.clientId] }),
    async loadExistingGrant(ctx) {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client.clientId,
        accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope("openid sandbox");
      grant.addResourceScope(audience, "sandbox");
      await grant.save();
      return grant;
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, resource, client) => ({
          scope: "sandbox sandbox:admin",
          audience: resource,
          accessTokenFormat: "jwt",
          accessTokenTTL: 600,
          jwt: { sign: { alg: { rs: "RS256", ed: "EdDSA" }[client.clientId]
            ?? "ES256" } },
        }),
      },
    },
  });
  return provider;
}

export async function startIssuer(audience) {
  let provider, handle, count = 0, isAway = false;
  const server = createServer(async (req, res) => {
    if (isAway) {
      req.socket.destroy();
    } else if (req.url.startsWith("/interaction/")) {
      await provider.interactionFinished(req, res,
        { login: { accountId: "alice" } });
    } else {
      count += req.url === "/jwks" ? 1 : 0;
      handle(req, res);
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${server.address().port}`;
  const issuer = {
    url,
    rotate() {
      provider = makeProvider(url, audience);
      handle = provider.callback();
    },
    away(is) {
      isAway = is;
    },
    asked: () => count, // how often for its keys
    async token(client, scope = "sandbox", resource = audience) {
      const answer = await fetch(`${url}/token`, {
        method: "POST",
        headers: { authorization: `Basic ${Buffer.from(
          `${client}:${encodeURIComponent(`secret of ${client}`)}`)
          .toString("base64")}` },
        body: new URLSearchParams({
          grant_type: "client_credentials", scope, resource }),
      });
      const { access_token: token, ...rest } = await answer.json();
      if (token === undefined)
        throw new Error(`no token: ${JSON.stringify(rest)}`);
      return token;
    },
    close: () => new Promise((done) => {
      server.closeAllConnections();
      server.close(done);
    }),
  };
  issuer.rotate();
  return issuer;
}
