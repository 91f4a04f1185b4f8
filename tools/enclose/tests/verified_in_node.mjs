// node verified_in_node.mjs FOLDER CHECKING JOB: certificates, verified as a page's worker would, an answer a line.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, checking, job] = process.argv.slice(2);
const { wheel, checker, certificates } = JSON.parse(fs.readFileSync(job, "utf8"));
const source = `${fs.readFileSync(checking, "utf8")}\nexport { verified };`;
const { verified } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: folder });
const bytes = (name) => new Uint8Array(fs.readFileSync(name));
for (const name of certificates) {
  const found = verified(python, bytes(path.join(folder, wheel)), checker, bytes(name));
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
