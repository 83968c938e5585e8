// The files of the page's Python: each is fetched once, compared with the hash that the book has for it, and kept for
// every worker that the page starts. Loading can be paused: what has arrived is kept, and loading goes on from there.

export class Files {
  #home; #listed; #told;
  #arriving = new Map(); // name: a promise of its Blob
  #bytes = new Map(); // name: how many bytes have arrived
  #pauses = 0;
  #going = Promise.resolve(); // what every file waits for before it reads on
  #goOn = () => {};

  /** `listed` has the length and the hash of each file by its name, and `told` is called whenever bytes have arrived. */
  constructor(home, listed, told) {
    this.#home = home;
    this.#listed = listed;
    this.#told = told;
  }

  get bytes() {
    return [...this.#bytes.values()].reduce((sum, count) => sum + count, 0);
  }

  /** All files by their names, as Blobs. What failed before is tried again. */
  async load() {
    this.#goOn();
    const names = Object.keys(this.#listed);
    for (const name of names) {
      if (this.#arriving.has(name)) continue;
      const blob = this.#whole(name);
      this.#arriving.set(name, blob);
      blob.catch(() => this.#arriving.delete(name));
    }
    const blobs = await Promise.all(names.map((name) => this.#arriving.get(name)));
    return new Map(names.map((name, i) => [name, blobs[i]]));
  }

  /** Read no further. Chromium then soon takes no more from the host; Firefox fetches to their end the files it has begun. */
  pause() {
    this.#pauses += 1;
    this.#goOn();
    this.#going = new Promise((resolve) => {
      this.#goOn = resolve;
    });
  }

  async #whole(name) {
    const pauses = this.#pauses;
    try {
      return await this.#checked(name, await this.#read(name));
    } catch (error) {
      this.#bytes.delete(name);
      if (error instanceof TypeError && pauses !== this.#pauses) return this.#whole(name); // a host may not wait so long
      throw error;
    }
  }

  async #read(name) {
    const response = await fetch(new URL(name, this.#home), { cache: "no-cache" }); // asked for again, sent if it changed
    if (!response.ok) throw new Error(`${name} could not be fetched: ${response.status}.`);
    const parts = [];
    for (const reader = response.body.getReader(); ;) {
      await this.#going;
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      this.#bytes.set(name, (this.#bytes.get(name) ?? 0) + value.length);
      this.#told();
    }
    const types = { wasm: "application/wasm", mjs: "text/javascript", json: "application/json" };
    return new Blob(parts, { type: types[name.split(".").pop()] ?? "" });
  }

  async #checked(name, blob) {
    if (!globalThis.crypto?.subtle) return blob; // a host without https
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await blob.arrayBuffer()));
    const hash = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (hash !== this.#listed[name].sha256) throw new Error(`${name} arrived damaged. Load the page again.`);
    return blob;
  }
}
