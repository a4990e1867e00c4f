// An endpoint that issues tokens for a relay, without dependencies. A game's backend would issue them in the same way,
// after it has authenticated the player.
//
//   rakwire-relay keygen --out token.key
//   node token-server.mjs --key token.key --target game --listen 127.0.0.1:8090 --allow-origin https://play.example.org
//   rakwire-relay --token-key token.key.pub ...
//
// A page then fetches http://127.0.0.1:8090/token and connects with the token in the response. The key may be an Ed25519
// key or a secret, as `rakwire-relay keygen` makes them.

import { createHmac, createPrivateKey, randomUUID, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    key: { type: "string" },
    target: { type: "string", default: "game" },
    listen: { type: "string", default: "127.0.0.1:8090" },
    lifetime: { type: "string", default: "60" },
    "allow-origin": { type: "string" },
  },
});

/** Returns the name of the key's algorithm, and a function that signs bytes. */
function signer(text) {
  const secret = /^hmac-sha256:(\S+)/.exec(text)?.[1];
  if (secret !== undefined) {
    const bytes = Buffer.from(secret, "base64url");
    return ["HS256", (data) => createHmac("sha256", bytes).update(data).digest()];
  }
  const key = createPrivateKey(text);
  return ["EdDSA", (data) => sign(null, data, key)];
}

const [alg, signature] = signer(readFileSync(values.key, "utf8"));

/** Returns a token for a short time, which is valid only for the address and the page that requested it. */
function token(address, origin) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = {
    exp: Math.floor(Date.now() / 1000) + Number(values.lifetime),
    jti: randomUUID(),
    target: values.target,
    // Omit this claim if clients may reach the relay from another address, such as over IPv4 here and over IPv6 there.
    addr: address.replace(/^::ffff:/, ""),
    // Data channels require this claim if the relay has a list of allowed origins.
    ...(origin !== undefined && { origin }),
  };
  const signed = `${part({ alg, typ: "JWT" })}.${part(claims)}`;
  return `${signed}.${signature(Buffer.from(signed)).toString("base64url")}`;
}

const server = createServer((request, response) => {
  if (request.method !== "GET" || request.url !== "/token") {
    response.writeHead(404).end();
    return;
  }
  const headers = { "Content-Type": "application/json", "Cache-Control": "no-store" };
  if (values["allow-origin"] !== undefined) headers["Access-Control-Allow-Origin"] = values["allow-origin"];
  response.writeHead(200, headers).end(JSON.stringify({ token: token(request.socket.remoteAddress, request.headers.origin) }));
});

const [, host, port] = /^(.*):(\d+)$/.exec(values.listen);
server.listen(Number(port), host.replace(/^\[|\]$/g, ""), () => {
  const { address, port, family } = server.address();
  console.log(`listening on http://${family === "IPv6" ? `[${address}]` : address}:${port}`);
});
