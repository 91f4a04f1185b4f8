"use strict";
// The buttons "Verify here": each runs the checker on one certificate, in a worker, with what verifier.js brings.

const given = JSON.parse(document.getElementById("certified").textContent);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

async function unpacked(text) {
  const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function script(address) {
  return new Promise((resolve, reject) => {
    const node = document.createElement("script");
    node.onload = resolve;
    node.onerror = () => reject(new Error(`${address} does not lie beside this page`));
    node.src = address;
    document.head.append(node);
  });
}

let files = null; // of verifier.js, after the first button

async function brought() {
  if (files === null) {
    await script(given.verifier);
    const found = {};
    for (const [name, sha256] of Object.entries(given.sha256)) {
      found[name] = await unpacked(globalThis.yzflowVerifier[name]);
      const own = hex(await crypto.subtle.digest("SHA-256", found[name]));
      if (own !== sha256) throw new Error(`${name} in ${given.verifier} is another file`);
    }
    files = found;
  }
  return files;
}

function check(certificate, say) {
  return new Promise((resolve, reject) => {
    const url = URL.createObjectURL(new Blob([given.worker], { type: "text/javascript" }));
    const worker = new Worker(url);
    worker.onerror = () => reject(new Error("the worker could not start"));
    worker.onmessage = ({ data }) => {
      if (data.began) return say("Computing every bound again ..");
      worker.terminate();
      return resolve(data);
    };
    worker.postMessage({ files, wheel: given.wheel, checker: given.checker, certificate });
  });
}

for (const place of document.querySelectorAll(".certificate")) {
  const [button, status, printed] = ["button", "[role=status]", "pre"].map((name) => place.querySelector(name));
  const say = (text, good) => {
    status.textContent = text;
    place.classList.toggle("verified", good === true);
    place.classList.toggle("refused", good === false);
  };
  button.onclick = async () => {
    button.disabled = true;
    printed.hidden = true;
    say(`Reading ${given.verifier}, and starting Python ..`);
    try {
      const certificate = bytes(place.querySelector("a").href.split(",")[1]);
      await brought();
      const began = performance.now();
      const found = await check(certificate, say);
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      if (found.refused !== "") throw new Error(found.refused);
      printed.textContent = found.lines.join("\n");
      printed.hidden = false;
      say(`Verified here, in ${seconds} s.`, true);
    } catch (error) {
      say(`Refused: ${error.message}`, false);
    }
    button.disabled = false;
  };
  button.hidden = false;
}
