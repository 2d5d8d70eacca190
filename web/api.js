// What the server is asked. Addresses are relative, so the dashboard works behind a prefix.

export class Trouble extends Error {
  constructor(status, kind, message, hint) {
    super(message);
    Object.assign(this, {status, kind, hint});
  }
}

async function ask(path, options) {
  let res;
  try {
    res = await fetch("api/" + path, options);
  } catch {
    throw new Trouble(0, "unreachable", "The server does not answer.", "Is it still running?");
  }
  if (res.ok) return res;
  const body = await res.json().catch(() => ({}));
  throw new Trouble(res.status, body.kind, body.error ?? res.statusText, body.hint);
}

export const get = async (path, signal) => (await ask(path, {signal})).json();
export const server = () => get("server");
export const live = () => get("live");
export const episodes = (query, signal) => get("episodes?" + new URLSearchParams(query), signal);
export const episode = (id) => get("episodes/" + encodeURIComponent(id));
export const step = (id, index) => get(`episodes/${encodeURIComponent(id)}/steps/${index}`);
export const trainings = () => get("training");
export const training = (name) => get("training/" + encodeURIComponent(name));
export const fleet = () => get("fleet");

/** screen is the address of a recorded picture. */
export const screen = (id, file) => `api/episodes/${encodeURIComponent(id)}/screens/${encodeURIComponent(file)}`;
/** lastScreen is that of a live episode's last one; the version makes the browser ask again. */
export const lastScreen = (id, version) => `api/episodes/${encodeURIComponent(id)}/screen?v=${version}`;
/** look has a picture of a live episode taken. */
export const look = (id) => ask(`episodes/${encodeURIComponent(id)}/look`, {method: "POST"});

/** events calls f with each state of the live page until the function it returns is called. */
export function events(f, trouble) {
  const source = new EventSource("api/events");
  source.addEventListener("live", (e) => f(JSON.parse(e.data)));
  source.addEventListener("error", () => trouble(source.readyState));
  return () => source.close();
}
