// The state of a reader in an episode: where he is, and what was fetched of it.

import * as api from "./api.js";
import {turns} from "./story.js";

export class Player {
  constructor(film) {
    this.set(film);
    this.at = 0;
    this.details = new Map();
  }

  set(film) {
    this.film = film;
    this.turned = turns(film);
  }

  get row() { return this.film.rows[this.at]; }

  go(index) {
    this.at = Math.max(0, Math.min(this.film.rows.length - 1, index));
  }

  /** next is the next step from here at which something happened, or the end. */
  next(direction) {
    const notable = (i) => this.turned[i].length || this.film.rows[i].error || this.film.rows[i].perturbations?.length;
    for (let i = this.at + direction; i >= 0 && i < this.film.rows.length; i += direction) if (notable(i)) return i;
    return direction > 0 ? this.film.rows.length - 1 : 0;
  }

  known(index) { return this.details.get(index); }

  /** detail fetches a step's text and evidence once. */
  async detail(index) {
    if (index < 0 || index >= this.film.rows.length) return undefined;
    if (!this.details.has(index)) this.details.set(index, await api.step(this.film.head.id, index));
    return this.details.get(index);
  }

  /** around fetches a step, the one before it and the next. */
  async around(index) {
    await Promise.all([this.detail(index), this.detail(index - 1)]);
    this.detail(index + 1).catch(() => {}); // ahead of the reader; asked for again when it is needed
  }
}
