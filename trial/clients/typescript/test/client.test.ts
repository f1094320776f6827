// The client against a real service (OMG_TRIAL_URL, OMG_TRIAL_TOKEN), with a network that fails when it is told to.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, mkdtemp, stat } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { FileStore } from "../src/file-store.js";
import { Client, OlderLogError, RefusedError, UnreachableError, type Send } from "../src/index.js";

const url = process.env.OMG_TRIAL_URL ?? "";
const token = process.env.OMG_TRIAL_TOKEN ?? "";
type Fault = "lost" | "answer lost" | Response;

class Network {
  faults: Fault[] = [];
  sent: Parameters<Send>[1][] = [];
  fetch: Send = async (input, init) => {
    const fault = this.faults.shift();
    this.sent.push(init);
    if (fault === "lost") throw new TypeError("no network");
    if (fault instanceof Response) return fault;
    const answer = await fetch(input, init);
    if (fault === "answer lost") throw new TypeError("no answer");
    return answer;
  };
  keys = () => this.sent.map((each) => each.headers["Idempotency-Key"]);
}

let people = 0;
const somebody = () => ({ person: `ts-${(people += 1)}`, context: { age: 50, lives: "alone" } });
const file = async () => join(await mkdtemp(join(tmpdir(), "omg-trial-")), "queue");

async function made(patience = 0.05, path?: string) {
  const network = new Network();
  const store = path === undefined ? {} : { store: new FileStore(path) };
  return { network, client: await Client.connect(url, token, { patience, timeout: 60, fetch: network.fetch, ...store }) };
}

for (const fault of ["lost", "answer lost", new Response("<p>Welcome", { status: 200 }), new Response('{"error": "busy"}', { status: 503 })] as Fault[]) {
  test(`a call is repeated until it is answered: ${fault instanceof Response ? fault.status : fault}`, async () => {
    const { network, client } = await made(60);
    const { episode } = await client.open(somebody());
    network.faults.push(fault);
    const decided = await client.decide(episode, { step: 0, state: "took it" });
    assert.ok(decided.event !== null && decided.probability !== null && decided.probability >= 0.1 - 1e-12);
    assert.equal(network.sent.length, 3);
    assert.equal(new Set(network.keys().slice(1)).size, 1);
  });
}

test("an app that ends before it hears the answer asks the same again", async () => {
  const path = await file(), person = somebody();
  const first = await made(0.05, path);
  first.network.faults.push("answer lost");
  await assert.rejects(first.client.open(person), UnreachableError);
  const second = await made(0.05, path);
  const { episode } = await second.client.open(person);
  assert.deepEqual(second.network.keys(), first.network.keys());
  const third = await made(0.05, path);
  assert.equal((await third.client.open(person)).episode, episode);
  assert.equal((await stat(path)).mode & 0o077, 0);
});

test("without a network the draws decide as the service would have", async () => {
  const path = await file();
  const { network, client } = await made(0.05, path);
  const { episode } = await client.open(somebody());
  network.faults.push("lost", "lost", "lost", "lost");
  const offline = await client.decide(episode, { step: 0, state: "took it" });
  assert.equal(offline.event, null);
  assert.equal(await client.report(episode, { step: 0, reward: 1, next_state: "missed it" }), false);
  assert.equal((await client.decide(episode, { step: 1, state: "missed it" })).event, null);
  network.faults.push("lost");
  assert.deepEqual(await client.decide(episode, { step: 0, state: "took it" }), offline, "asked again: it is told once");
  const later = await made(0.05, path);
  assert.equal(await later.client.send(), 3);
  assert.deepEqual(later.client.refused(), []);
  const told = later.network.sent.map((each) => JSON.parse(each.body) as { action?: string; device_time?: string });
  assert.ok(told.every((each) => each.action === undefined || each.device_time !== undefined), "an action has its time");
  const known = await later.client.decide(episode, { step: 0, state: "took it" });
  assert.deepEqual([known.action, known.probability], [offline.action, offline.probability]);
  assert.ok(known.event !== null);
  assert.ok(await later.client.close(episode, { cause: "dropped out" }));
  assert.ok(!(await readFile(path, "utf8")).includes("ts-"), "what was answered is forgotten");
});

test("calls that are made at once are sent one after the other", async () => {
  const { client } = await made(60);
  const { episode } = await client.open(somebody());
  const steps = [0, 1, 2, 3].map((step) => client.decide(episode, { step, state: "took it" }));
  const events = (await Promise.all(steps)).map((each) => each.event ?? 0);
  assert.deepEqual(events, [...events].sort((one, other) => one - other));
});

test("a redirect is not followed: a call names a person", async () => {
  const elsewhere = createServer((_, answer) => answer.writeHead(307, { Location: `${url}/v1/episodes` }).end()).listen(0);
  await once(elsewhere, "listening");
  const { port } = elsewhere.address() as AddressInfo;
  elsewhere.unref();
  const client = await Client.connect(`http://127.0.0.1:${port}`, token, { patience: 0.05, timeout: 60 });
  await assert.rejects(client.open(somebody()), UnreachableError);
});

test("a refusal is thrown, and one that waited is set aside", async () => {
  const { network, client } = await made();
  const { episode } = await client.open(somebody());
  await assert.rejects(client.report(episode, { step: 0, reward: 7 }), (error) => error instanceof RefusedError && error.status === 422);
  await assert.rejects(client.report(episode, { step: 0, reward: NaN }), /`reward` must be a finite number/);
  network.faults.push("lost", "lost");
  assert.equal(await client.report(episode, { step: 0, reward: 7 }), false);
  assert.equal(await client.report(episode, { step: 0, reward: 1 }), false);
  assert.equal(await client.send(), 1);
  assert.deepEqual(client.refused().map((each) => each.body.reward), [7]);
});

test("a service without an event that was seen is not believed", async () => {
  const { network, client } = await made();
  network.faults.push(new Response("{}", { status: 200, headers: { "Log-Head": `999999:${"0".repeat(64)}` } }));
  const { episode } = { episode: 1, ...(await client.open(somebody()).catch(() => ({}))) };
  await assert.rejects(client.report(episode, { step: 0, reward: 1 }), OlderLogError);
  await client.trust();
  assert.deepEqual(client.refused().map((each) => each.body.reward), [1]);
  await assert.rejects(client.report(999999, { step: 0, reward: 1 }), /there is no episode/);
});
