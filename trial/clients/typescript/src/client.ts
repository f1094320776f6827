// The client of an app: it never decides twice, and goes on without a network as far as that is possible.

import { MemoryStore, Outbox, type Body, type QueuedCall, type Store } from "./outbox.js";
import type { Close, Decide, Decided, Open, Opened, Report } from "./types.js";

const FIRST_PAUSE = 0.1;
const LONGEST_PAUSE = 5;
/** Refusals of the client, and not of a call: what waits goes on waiting. */
const KEPT_FOR_LATER = [401, 403];

/** The service has refused a call, and will again; `status` is that of HTTP. */
export class RefusedError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The service lacks an event that it had answered with: an older backup was restored, for example. */
export class OlderLogError extends RefusedError {}

/** The service did not answer. The same call, made again, is the same: it is not done twice. */
export class UnreachableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UnreachableError";
  }
}

/** Sends a request, as `fetch` does. */
export type Send = (url: string, init: { method: string; headers: Record<string, string>; body: string; redirect: "error"; signal: AbortSignal }) => Promise<Response>;

export interface Options {
  /** Where calls survive a crash of the app; in memory, if left out. */
  store?: Store;
  /** The name of the text in the store. */
  name?: string;
  /** Seconds for which a call is repeated before `UnreachableError`. */
  patience?: number;
  /** Seconds for which one attempt may take; as long as `patience`, if left out. */
  timeout?: number;
  /** Another way to send calls, for tests. */
  fetch?: Send;
}

/** A decision; one that was made without a network has no event yet. */
export type Decision = Omit<Decided, "event"> & { event: number | null };

/** Asks a service for decisions, and tells it what came of them; calls are made one after the other. */
export class Client {
  private last: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly url: string,
    private readonly token: string,
    private readonly outbox: Outbox,
    private readonly patience: number,
    private readonly timeout: number,
    private readonly fetch: Send,
  ) {}

  static async connect(url: string, token: string, options: Options = {}): Promise<Client> {
    if (!/^https?:\/\//.test(url)) throw new TypeError("`url` must begin with http:// or https://");
    if (!/^[\x21-\x7e]+$/.test(token)) throw new TypeError("`token` must be a text of visible ASCII characters, as `omg-trial token` prints it");
    const outbox = await Outbox.read(options.store ?? new MemoryStore(), options.name ?? "omg-trial");
    const patience = options.patience ?? 10, send: Send = options.fetch ?? ((to, init) => fetch(to, init));
    return new Client(url.replace(/\/$/, ""), token, outbox, patience, options.timeout ?? patience, send);
  }

  /**
   * Begin an episode; this needs a network. Until it is closed, the same call returns the same episode. If the service or
   * another phone has closed it, its calls are refused with 409: `close` it here too.
   */
  open(call: Open): Promise<Opened> {
    return this.inTurn(async () => {
      // In the store before it is sent: after a crash the same call has the same key, and opens no second episode.
      const queued = await this.outbox.call("/v1/episodes", { ...call }, false);
      const opened = (await this.ask(queued)) as Opened;
      await this.outbox.keep(opened, queued);
      return opened;
    });
  }

  /**
   * Return the decision for a step. Without a network it is the one that the service would make, from the draws with
   * which the episode was opened; the service hears of it later. Without draws, or after the end of an allowance, it is an
   * `UnreachableError`.
   */
  decide(episode: number, call: Omit<Decide, "action" | "allowance">): Promise<Decision> {
    return this.inTurn(async () => {
      const path = pathOf(episode, "decisions");
      const queued = await this.outbox.call(path, { ...call }, false);
      let decided: Decision;
      try {
        decided = (await this.ask(queued)) as Decided;
      } catch (error) {
        const known = error instanceof UnreachableError ? this.knownDecision(episode, call) : null;
        if (known === null) throw error;
        // The service would draw the same; if it had heard the first call, it gives the same answer to this one.
        const allowance = this.outbox.opened(episode)?.allowance;
        const proof = { device_time: new Date().toISOString(), ...call, ...(allowance ? { allowance: allowance.signature } : {}) };
        if (!this.outbox.tells(path, call)) await this.outbox.call(path, { ...proof, action: known.action }, true);
        decided = known;
      }
      await this.outbox.done(queued);
      return decided;
    });
  }

  /** Say what came of a step. Return whether the service knows it; if not, it waits for a network. */
  report(episode: number, call: Report): Promise<boolean> {
    return this.inTurn(() => this.tell(pathOf(episode, "outcomes"), { ...call }));
  }

  /** End an episode. Return whether the service knows it; if not, it waits for a network. */
  close(episode: number, call: Close = {}): Promise<boolean> {
    return this.inTurn(async () => {
      try {
        const known = await this.tell(pathOf(episode, "close"), { ...call });
        await this.outbox.forget(episode);
        return known;
      } catch (error) {
        if (error instanceof RefusedError && error.status !== 422) await this.outbox.forget(episode);
        throw error;
      }
    });
  }

  /** Send the calls that wait, in their order, and return their number. One that is refused is set aside. */
  send(): Promise<number> {
    return this.inTurn(() => this.sendWaiting());
  }

  /** The calls that waited and were refused. Somebody has to look at them. */
  refused(): { path: string; body: Body; refusal: string }[] {
    return this.outbox.refused().map(({ path, body, refusal }) => ({ path, body, refusal: refusal ?? "" }));
  }

  /**
   * Go on with a service whose log is older than what was seen, after the team has decided to. Numbers of episodes may have
   * become those of other people: what waits is set aside, see `refused`. Open the episodes that are under way again.
   */
  trust(): Promise<void> {
    return this.inTurn(() => this.outbox.trust());
  }

  /** One call at a time: their order is part of what they say. */
  private inTurn<Result>(task: () => Promise<Result>): Promise<Result> {
    const made = this.last.then(task, task);
    this.last = made.catch(() => undefined);
    return made;
  }

  private async tell(path: string, body: Body): Promise<boolean> {
    const own = await this.outbox.call(path, body, true);
    try {
      await this.sendWaiting(own);
      return true;
    } catch (error) {
      if (error instanceof UnreachableError) return false;
      throw error;
    }
  }

  /** A refusal of `own` is thrown; other calls that are refused are set aside. */
  private async sendWaiting(own?: QueuedCall): Promise<number> {
    let sent = 0;
    for (let call = this.outbox.first(); call; call = this.outbox.first()) {
      try {
        await this.answer(call);
        await this.outbox.done(call);
        sent += 1;
      } catch (error) {
        if (!(error instanceof RefusedError) || error instanceof OlderLogError || KEPT_FOR_LATER.includes(error.status)) throw error;
        if (call.key === own?.key) {
          await this.outbox.done(call);
          throw error;
        }
        await this.outbox.refuse(call, error.message);
      }
    }
    return sent;
  }

  /** Return the answer of a call that cannot wait, after the calls that do. */
  private async ask(call: QueuedCall): Promise<unknown> {
    await this.sendWaiting();
    try {
      return await this.answer(call);
    } catch (error) {
      if (error instanceof RefusedError) await this.outbox.done(call);
      throw error;
    }
  }

  /** Send a call until the service answers it. */
  private async answer(call: QueuedCall): Promise<unknown> {
    const end = performance.now() + 1000 * this.patience; // whatever the phone's clock is set to meanwhile
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      let cause: string;
      try {
        const response = await this.post(call);
        const answer = await this.answerIn(response);
        if (answer !== null) return answer;
        cause = `status ${response.status}`;
        pause = Math.max(pause, Math.min(Number(response.headers.get("Retry-After")) || 0, LONGEST_PAUSE));
      } catch (error) {
        if (error instanceof RefusedError) throw error;
        cause = error instanceof Error ? error.name : "no network";
      }
      if (performance.now() + 1000 * pause > end) throw new UnreachableError(`the service did not answer for ${this.patience} seconds: ${cause}`);
      await new Promise((resolve) => setTimeout(resolve, 1000 * pause));
    }
  }

  private async post(call: QueuedCall): Promise<Response> {
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.token}`, "Content-Type": "application/json", "Idempotency-Key": call.key,
    };
    if (this.outbox.seen !== null) headers["Log-Seen"] = this.outbox.seen;
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), 1000 * this.timeout);
    try {
      const sent = { method: "POST", headers, body: JSON.stringify(call.body), redirect: "error" as const, signal: stop.signal };
      const response = await this.fetch(this.url + call.path, sent);
      // The body is read while the timer runs.
      return new Response(await response.text(), { status: response.status, headers: response.headers });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Return the answer; null if the call must be sent again, as after an answer of a proxy. */
  private async answerIn(response: Response): Promise<unknown> {
    const content: unknown = await response.json().catch(() => null);
    if (content === null || typeof content !== "object" || Array.isArray(content)) return null;
    const head = response.headers.get("Log-Head");
    if (response.ok && head !== null) {
      if (eventOf(head) > eventOf(this.outbox.seen)) this.outbox.seen = head;
      return content;
    }
    // A call that fails unexpectedly (500) would fail again: it is set aside like one that is refused.
    const final = (response.status >= 400 && response.status <= 500) && response.status !== 429;
    if (final && "error" in content) {
      const Kind = head === null ? RefusedError : OlderLogError;
      throw new Kind(response.status, String(content.error));
    }
    return null;
  }

  private knownDecision(episode: number, { step, state, available }: Omit<Decide, "action" | "allowance">): Decision | null {
    const opened = this.outbox.opened(episode);
    const place = opened?.states.indexOf(state) ?? -1;
    const action = opened?.drawn?.[step]?.[place];
    if (!opened || action === undefined || available === false) return null;
    if (opened.allowance && Date.now() >= Date.parse(opened.allowance.until)) return null;
    const probability = opened.policy[step]?.[place]?.[opened.actions.indexOf(action)] ?? null;
    const fallback = opened.source === "plan" ? null : { source: opened.source, cause: opened.cause, rules: [] };
    return { episode, event: null, step, action, probability, available: true, version: opened.version, fallback } as Decision;
  }
}

const eventOf = (mark: string | null): number => (mark === null ? 0 : Number(mark.split(":")[0]));

function pathOf(episode: number, what: string): string {
  if (!Number.isSafeInteger(episode) || episode < 1) throw new TypeError("`episode` must be a number of an episode");
  return `/v1/episodes/${episode}/${what}`;
}

