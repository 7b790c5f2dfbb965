// SPDX-License-Identifier: Apache-2.0
// node bundle.mjs FILE - bundles src/ into one page without data. Its content security policy allows this
// script and this style, by their hashes, and nothing else.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import * as esbuild from "esbuild";

const options = {
  bundle: true,
  minify: true,
  write: false,
  charset: "ascii",
  legalComments: "none",
};
const bundle = (entry, more) =>
  esbuild.buildSync({ ...options, ...more, entryPoints: [entry] }).outputFiles[0].text;
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = bundle("src/main.ts", {
  format: "iife",
  target: ["chrome100", "firefox113", "safari16.4"],
}).trim();
const style = bundle("src/page.css", { target: ["chrome100", "firefox113", "safari16.4"] }).trim();
if (script.includes("</script")) throw new Error("the script would end itself");
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "img-src data:",
  "connect-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
const page = readFileSync("src/page.html", "utf8")
  .replace("@POLICY@", () => policy)
  .replace("@STYLE@", () => style)
  .replace("@SCRIPT@", () => script);
writeFileSync(process.argv[2], page);
