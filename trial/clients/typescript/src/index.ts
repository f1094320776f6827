export { Client, OlderLogError, RefusedError, UnreachableError, type Decision, type Options, type Send } from "./client.js";
export { MemoryStore, type Store } from "./outbox.js";
export type * from "./types.js";
