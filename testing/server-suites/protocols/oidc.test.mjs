// Tokens of a real OpenID provider (`issuer.mjs`) at our server, whose policy file names it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";

const { SERVER_URL, ISSUER_PORT } = process.env;
const issuer = `http://127.0.0.1:${ISSUER_PORT}`;

let provider;

async function startProvider(seed) {
  const child = spawn(process.execPath, ["issuer.mjs", ISSUER_PORT, seed], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [printed] = await Promise.race([
    once(child.stdout, "data"),
    once(child, "exit").then(() => ["it stopped"]),
  ]);
  assert.equal(String(printed).trim(), "ready");
  provider = child;
}

async function stopProvider() {
  const exited = once(provider, "exit");
  provider.kill();
  await exited;
}

async function token(client, resource = "urn:superstep:rs256") {
  const { token_endpoint } = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  const response = await fetch(token_endpoint, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${client}:secret`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", resource }),
  });
  const granted = await response.json();
  assert.equal(response.status, 200, JSON.stringify(granted));
  return granted.access_token;
}

async function status(path, bearer) {
  const headers = { "content-type": "application/json" };
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  const response = await fetch(`${SERVER_URL}${path}`, { method: "POST", headers, body: "{}" });
  await response.arrayBuffer();
  return response.status;
}

const READ = "/threads/search";
const CREATE = "/threads";

const header = (bearer) => JSON.parse(Buffer.from(bearer.split(".")[0], "base64url"));

before(() => startProvider("first"));
after(stopProvider);

test("without a token, nothing is read", async () => {
  assert.equal(await status(READ), 401);
  assert.equal(await status(READ, "nonsense"), 401);
});

for (const alg of ["RS256", "ES256"]) {
  test(`a token that is signed with ${alg} is accepted`, async () => {
    const bearer = await token("operator", `urn:superstep:${alg.toLowerCase()}`);
    assert.equal(header(bearer).alg, alg);
    assert.equal(await status(READ, bearer), 200);
    assert.equal(await status(CREATE, bearer), 200);
  });

  test(`a forged token with ${alg} is refused`, async () => {
    const bearer = await token("operator", `urn:superstep:${alg.toLowerCase()}`);
    const [head, claims, signature] = bearer.split(".");
    const other = JSON.parse(Buffer.from(claims, "base64url"));
    const forged = Buffer.from(JSON.stringify({ ...other, sub: "root" })).toString("base64url");
    assert.equal(await status(READ, [head, forged, signature].join(".")), 401);
  });
}

test("a token for another audience is refused", async () => {
  assert.equal(await status(READ, await token("operator", "urn:other")), 401);
});

test("a role that may only read cannot create", async () => {
  const bearer = await token("viewer");
  assert.equal(await status(READ, bearer), 200);
  assert.equal(await status(CREATE, bearer), 403);
});

test("a token without a role may do nothing", async () => {
  assert.equal(await status(READ, await token("guest")), 403);
});

test("a token is refused when it has expired", async () => {
  const bearer = await token("operator", "urn:superstep:short");
  assert.equal(await status(READ, bearer), 200);
  const { exp } = JSON.parse(Buffer.from(bearer.split(".")[1], "base64url"));
  for (let answer = 200; answer !== 401; answer = await status(READ, bearer)) {
    assert.equal(answer, 200);
    assert.ok(Date.now() / 1000 < exp + 5, "it is accepted 5 s after its end");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});

test("new keys are fetched, and tokens of the old ones are refused", async () => {
  const old = await token("operator");
  assert.equal(await status(READ, old), 200);
  await stopProvider();
  // The keys are kept while the issuer is away.
  assert.equal(await status(READ, old), 200);
  await startProvider("second");
  const bearer = await token("operator");
  assert.notEqual(header(bearer).kid, header(old).kid);
  // The server waits a second between two fetches.
  let answer = await status(READ, bearer);
  for (let waited = 0; answer === 401 && waited < 5_000; waited += 100) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    answer = await status(READ, bearer);
  }
  assert.equal(answer, 200);
  assert.equal(await status(READ, old), 401);
});
