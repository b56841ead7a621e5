// An OpenID provider (the npm package oidc-provider) whose clients get tokens with their own credentials.
//
//   node issuer.mjs PORT SEED
//
// Prints `ready` when it listens. Each SEED has keys of its own, so a provider that is started again with another one has rotated
// its keys. The resource that a client names decides how its token is signed, for whom it is and how long it is valid.

import { generateKeyPairSync } from "node:crypto";

import Provider from "oidc-provider";

const [port, seed] = process.argv.slice(2);

function key(kind, options, alg) {
  const { privateKey } = generateKeyPairSync(kind, options);
  return { ...privateKey.export({ format: "jwk" }), kid: `${alg}-${seed}`, alg, use: "sig" };
}

const client = (id) => ({
  client_id: id,
  client_secret: "secret",
  grant_types: ["client_credentials"],
  response_types: [],
  redirect_uris: [],
});

const RESOURCES = {
  "urn:superstep:rs256": { alg: "RS256", audience: "superstep", seconds: 600 },
  "urn:superstep:es256": { alg: "ES256", audience: "superstep", seconds: 600 },
  "urn:superstep:short": { alg: "RS256", audience: "superstep", seconds: 3 },
  "urn:other": { alg: "RS256", audience: "other", seconds: 600 },
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [client("operator"), client("viewer"), client("guest")],
  jwks: {
    keys: [
      key("rsa", { modulusLength: 2048 }, "RS256"),
      key("ec", { namedCurve: "P-256" }, "ES256"),
    ],
  },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo(_, resource) {
        const { alg, audience, seconds } = RESOURCES[resource];
        return {
          scope: "",
          audience,
          accessTokenTTL: seconds,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg } },
        };
      },
    },
  },
  // The client `guest` has no role.
  extraTokenClaims: (_, token) => (token.clientId === "guest" ? {} : { roles: [token.clientId] }),
});

provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
