// Made by generate.mjs from the OpenAPI document of the service; not edited by hand.

/** Leave to act without a network although the week has limits; `policy` and `drawn` keep them on every path. */
export interface Allowed {
  until: string;
  /** To be sent with every decision that was made without a network. */
  signature: string;
}

/** End an episode. */
export interface Close {
  cause?: "finished" | "dropped out" | "overdue" | "other";
}

/** An episode that has ended. */
export interface Closed {
  event: number;
  episode: number;
  cause: string;
}

/** Ask for the action of a step; with `action` the app says that it has acted already, without a network. */
export interface Decide {
  step: number;
  state: string;
  action?: string | null;
  /** Whether the person can be asked to do something now; if not, nothing is drawn. */
  available?: boolean;
  /** The time by the clock of the device. */
  device_time?: string | null;
  /** The allowance's signature. */
  allowance?: string | null;
}

/** The action to take, and its probability. */
export interface Decided {
  event: number;
  episode: number;
  step: number;
  /** null if nothing is to be done, as the person is not available. */
  action: string | null;
  /** null if the app did something else than what was drawn, or nothing was drawn. */
  probability: number | null;
  /** Whether there was something to draw. */
  available: boolean;
  version: number;
  fallback: Fallback | null;
}

/** Why a call was refused; nothing has changed. */
export interface ErrorAnswer {
  error: string;
}

/** The reason why a decision is not simply the plan's: another source of the policy, or rules that changed it. */
export interface Fallback {
  source: string;
  cause: string | null;
  rules: string[];
}

/** Begin an episode for a person. */
export interface Open {
  person: string;
  /** Name of the decision point, such as a date. It exists once for each person, for ever: the same name has the same episode. Without one, the next after those in which something was decided. */
  occasion?: string | null;
  /** What is known of the person: by column of the trial file, or one of its labels. */
  context: unknown;
  /** Whether anything may be drawn in the episode. */
  available?: boolean;
  /** The time by the clock of the device. */
  device_time?: string | null;
}

/** An episode: its number, and its whole policy. */
export interface Opened {
  event: number;
  episode: number;
  /** Version of the model in use. */
  version: number;
  /** plan, last plan, fixed or control: see the guide on fallbacks. */
  source: string;
  /** Why it is not a fresh plan; null if it is. */
  cause: string | null;
  /** A bound on γ·(L(q*) - L(q)): how far the plan's objective L, which includes the barrier, is from its optimum, in units of 1/γ. null without a plan. */
  certificate: number | null;
  policy: number[][][];
  horizon: number;
  states: string[];
  actions: string[];
  /** The action of every step and state, as a decision would answer it: an app without a network may act by it and tell later. null unless the trial file says `offline`, or if a rule or replanning can change it. */
  drawn: string[][] | null;
  /** null if the week has no limits, or no app acts without a network. */
  allowance: Allowed | null;
}

/** Say what came of a step: its reward, the next state, or both; a correction has a higher `revision`. */
export interface Report {
  step: number;
  reward?: number | null;
  next_state?: string | null;
  revision?: number;
}

/** An outcome that was kept. */
export interface Reported {
  event: number;
  episode: number;
  step: number;
  revision: number;
}
