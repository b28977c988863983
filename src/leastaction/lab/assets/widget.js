// The lab in a notebook's cell: asked by the notebook's messages.

import { fromBytes } from "./data.js";
import { Lab } from "./lab.js";

export function render({ model, el }) {
  const waiting = new Map();
  let next = 0;
  const heard = (content, buffers) => {
    const done = waiting.get(content?.id);
    if (!done) return;
    waiting.delete(content.id);
    const view = buffers[0], scene = fromBytes(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
    scene.error ? done.reject(new Error(scene.error)) : done.resolve(scene);
  };
  model.on("msg:custom", heard);
  const ask = asked => new Promise((resolve, reject) => { const id = next++; waiting.set(id, { resolve, reject }); model.send({ id, asked }); });
  const root = document.createElement("div");
  root.className = "la-widget";
  el.append(root);
  new Lab(root, { ask, first: model.get("first"), keys: root });
  return () => model.off("msg:custom", heard);
}
