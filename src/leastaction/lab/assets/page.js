// The lab on a page of its own: asked by HTTP, its state kept in the part of the address after #.

import { fromBytes } from "./data.js";
import { Lab } from "./lab.js";

export function openLab(root, { first }) {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const ask = async request => {
    let answer;
    try {
      answer = await fetch("/ask", { method: "POST", headers: { "Content-Type": "application/json", "X-Token": token }, body: JSON.stringify(request) });
    } catch { throw new Error("The lab does not answer: is `leastaction lab` still running?"); }
    if (!answer.ok) throw new Error(await answer.text());
    const scene = fromBytes(await answer.arrayBuffer());
    if (scene.error) throw new Error(scene.error);
    return scene;
  };
  const link = {
    read: () => location.hash.slice(1), full: () => location.href,
    write: text => { link.own = text; history.replaceState(null, "", `#${text}`); },
  };
  const lab = new Lab(root, { ask, first, link });
  window.addEventListener("hashchange", () => { if (link.read() !== link.own && lab.subject) lab.choose(lab.read() ?? { subject: first }).catch(error => lab.say(error.message)); });
  return lab;
}
