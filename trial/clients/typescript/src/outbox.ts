// What a client must not forget: calls that were not answered yet, episodes under way, and how far it knows the log.
//
// It is one text in a store, written before anything is sent. A call keeps its key there until it is answered, through
// crashes and restarts, and so is one call however often it is sent. What was answered is deleted.

import type { Decide, Opened } from "./types.js";

/** Where a text survives a restart of the app: localStorage, AsyncStorage of React Native, or `FileStore`. */
export interface Store {
  getItem(key: string): string | null | Promise<string | null>;
  setItem(key: string, value: string): void | Promise<void>;
}

export type Body = Record<string, unknown>;

export interface QueuedCall {
  readonly number: number;
  readonly key: string;
  readonly path: string;
  readonly body: Body;
  /** Whether it is sent whenever there is a network; others are sent only when they are made again. */
  readonly waits: boolean;
  refusal?: string;
}

interface Content {
  next: number;
  calls: QueuedCall[];
  episodes: Record<string, { opened: Opened; call: number }>;
  seen: string | null;
}

/** Keeps everything in memory: for tests, and for apps that may forget. */
export class MemoryStore implements Store {
  private readonly texts = new Map<string, string>();
  getItem(key: string): string | null {
    return this.texts.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.texts.set(key, value);
  }
}

export class Outbox {
  private constructor(private readonly store: Store, private readonly name: string, private readonly content: Content) {}

  static async read(store: Store, name: string): Promise<Outbox> {
    const text = await store.getItem(name);
    return new Outbox(store, name, text === null ? { next: 1, calls: [], episodes: {}, seen: null } : (JSON.parse(text) as Content));
  }

  /** NUMBER:HASH of the last event that the client knows of; kept with what is kept next. */
  get seen(): string | null {
    return this.content.seen;
  }
  set seen(mark: string | null) {
    this.content.seen = mark;
  }

  /** Return the call to make: one with a new key, or the same that was not answered before. */
  async call(path: string, body: Body, waits: boolean): Promise<QueuedCall> {
    const text = canonical(body);
    const same = (each: QueuedCall) => each.path === path && each.waits === waits && !each.refusal && canonical(each.body) === text;
    const known = this.content.calls.find(same);
    if (known) return known;
    const made = { number: this.content.next++, key: newKey(), path, body: JSON.parse(text) as Body, waits };
    this.content.calls.push(made);
    await this.save();
    return made;
  }

  /** Whether a decision of this step and state waits already. */
  tells(path: string, { step, state }: Pick<Decide, "step" | "state">): boolean {
    const same = ({ body }: QueuedCall) => body.step === step && body.state === state;
    return this.content.calls.some((each) => each.path === path && each.waits && !each.refusal && same(each));
  }

  /** The first call that waits for a network. */
  first(): QueuedCall | undefined {
    return this.content.calls.find((each) => each.waits && !each.refusal);
  }

  async done(call: QueuedCall): Promise<void> {
    this.content.calls = this.content.calls.filter((each) => each.number !== call.number);
    await this.save();
  }

  async refuse(call: QueuedCall, message: string): Promise<void> {
    call.refusal = message;
    await this.save();
  }

  /** Forget the last event that was seen, and the episodes: a number may be that of another person's by now. */
  async trust(): Promise<void> {
    this.content.seen = null;
    this.content.episodes = {};
    for (const each of this.content.calls.filter((call) => call.waits)) each.refusal ??= "it waited when events were lost: its episode may be another person's now";
    await this.save();
  }

  refused(): QueuedCall[] {
    return this.content.calls.filter((each) => each.refusal);
  }

  opened(episode: number): Opened | undefined {
    return this.content.episodes[episode]?.opened;
  }

  /** Keep how an episode was opened, and the call: made again while the episode is under way, it is the same. */
  async keep(opened: Opened, call: QueuedCall): Promise<void> {
    this.content.episodes[opened.episode] = { opened, call: call.number };
    await this.save();
  }

  async forget(episode: number): Promise<void> {
    const known = this.content.episodes[episode];
    delete this.content.episodes[episode];
    this.content.calls = this.content.calls.filter((each) => each.number !== known?.call);
    await this.save();
  }

  async save(): Promise<void> {
    await this.store.setItem(this.name, JSON.stringify(this.content));
  }
}

/** JSON with sorted names; a number that JSON does not have is an error, and not null. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (name, each: unknown) => {
    if (typeof each === "number" && !Number.isFinite(each)) throw new TypeError(`\`${name}\` must be a finite number`);
    if (each === null || typeof each !== "object" || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}

function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(24)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
