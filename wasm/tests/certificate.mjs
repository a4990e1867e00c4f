// Certificates for tests, and the authority that makes a browser trust them.

import { execFileSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Creates a certificate for a host name, and the authority that signs it, as files in a folder. */
export function makeCertificate(folder, name) {
  const [authority, authorityKey, pem, key] = ["authority.pem", "authority.key", "certificate.pem", "key.pem"].map((file) => join(folder, file));
  const make = (...more) => {
    const fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"];
    execFileSync("openssl", ["req", "-x509", ...fresh, ...more], { stdio: "pipe" });
  };
  make("-subj", "/CN=authority of a test", "-keyout", authorityKey, "-out", authority);
  const signed = ["-CA", authority, "-CAkey", authorityKey, "-addext", "basicConstraints=critical,CA:FALSE"];
  make("-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`, ...signed, "-keyout", key, "-out", pem);
  const { publicKey } = new X509Certificate(readFileSync(pem));
  const spki = createHash("sha256").update(publicKey.export({ type: "spki", format: "der" })).digest("base64");
  return { authority, pem, key, spki };
}
