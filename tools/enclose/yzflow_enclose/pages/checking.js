"use strict";
// Verifies one certificate by the checker, in Python with python-flint: `verified` runs in Node, too, where tests call
// it; the rest is the worker of a page, so that the page stays awake.

const PROGRAM = `
import contextlib, io, json, sys
import verify
printed, refused = io.StringIO(), ""
try:
    with contextlib.redirect_stdout(printed):
        verify.main(["certificate"])
except SystemExit as error:
    refused = str(error.code).partition("FILE: ")[2] or "not verified"
except BaseException as error:
    refused = f"not verified: {type(error).__name__}"
json.dumps({"lines": printed.getvalue().splitlines(), "refused": refused})
`;

// What the checker prints, and why it refuses, "" where it does not. Nothing is kept for the next certificate.
function verified(python, wheel, checker, certificate) {
  python.unpackArchive(wheel, "wheel");
  for (const [name, text] of Object.entries(checker)) python.FS.writeFile(name, text);
  python.FS.writeFile("certificate", certificate);
  const found = JSON.parse(python.runPython(PROGRAM));
  return found.refused === "" && found.lines.length === 0 ? { lines: [], refused: "not verified: no claim" } : found;
}

async function answer({ files, wheel, checker, certificate }) {
  // Pyodide refuses workers that are no modules, which it tells by this function; a page that was opened as a file can
  // start no others.
  globalThis.importScripts = undefined;
  const type = (name) => (name.endsWith(".wasm") ? "application/wasm" : "text/javascript");
  const brought = (name) => new Blob([files[name]], { type: type(name) });
  globalThis.fetch = async (address) => new Response(brought(String(address).split("/").pop()));
  const module = (name) => import(URL.createObjectURL(brought(name)));
  const { loadPyodide } = await module("pyodide.mjs");
  const { default: createPyodideModule } = await module("pyodide.asm.mjs");
  const lockFileContents = new TextDecoder().decode(files["pyodide-lock.json"]);
  const python = await loadPyodide({ indexURL: "file:///", createPyodideModule, lockFileContents });
  postMessage({ began: true });
  return verified(python, files[wheel], checker, certificate);
}

if (typeof WorkerGlobalScope !== "undefined") {
  globalThis.onmessage = async ({ data }) => {
    try {
      postMessage(await answer(data));
    } catch (error) {
      postMessage({ lines: [], refused: `not verified: ${error}` });
    }
  };
}
