// The official TypeScript SDK of the Agent Client Protocol drives `strongroom acp`, as an editor would.
//
// node story.mjs STRONGROOM: prints a line `ok ...` a step; exit code 0 when every step was as it should be.
// A home and a project of its own in a temporary directory, the offline model, no network.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";

import { client, methods, ndJsonStream, PROTOCOL_VERSION, RequestError } from "@agentclientprotocol/sdk";

const HANG_GUARD = 60_000;

const strongroom = process.argv[2] ?? "strongroom";
const place = mkdtempSync(join(tmpdir(), "strongroom-acp-"));
const home = join(place, "home");
const cwd = join(place, "project");
const environment = { PATH: process.env.PATH, HOME: place, STRONGROOM_HOME: home };

/** What the person answers next: gets the permission's parameters, returns an option's id, or null to close it. */
let decide = () => "reject_once";
let fill = () => ({ action: "decline" });
const asked = [];
/** Every update in the order in which it came; the SDK's handlers run a little later, and the answer may overtake them. */
const updates = [];
let heard = 0;
let answers = 0;
let delivered = 0;
let arrived = () => {};

const tap = new TransformStream({
  transform(message, controller) {
    if (message.method === methods.client.session.update) {
      heard += 1;
      updates.push({ ...message.params, answers });
    }
    if ("result" in message || "error" in message) answers += 1;
    controller.enqueue(message);
    arrived();
  },
});

const editor = client({ name: "an editor" })
  .onRequest(methods.client.session.requestPermission, async ({ params }) => {
    asked.push(params);
    const option = await decide(params);
    return { outcome: option === null ? { outcome: "cancelled" } : { outcome: "selected", optionId: option } };
  })
  .onRequest(methods.client.elicitation.create, ({ params }) => fill(params))
  .onNotification(methods.client.session.update, () => {
    delivered += 1;
    arrived();
  });

const of = (session, kind) =>
  updates.filter((each) => each.sessionId === session && each.update.sessionUpdate === kind).map((each) => each.update);
const said = (session) => of(session, "agent_message_chunk").map((each) => each.content.text).join("");
const texts = (session) =>
  updates
    .filter((each) => each.sessionId === session && each.update.sessionUpdate.endsWith("_message_chunk"))
    .map(({ update }) => [update.sessionUpdate, update.messageId, update.content.text]);
const note = (name) => join(cwd, name);

async function until(hasHappened) {
  while (!hasHappened()) await new Promise((resolve) => (arrived = resolve));
}

async function refused(code, kind, promise) {
  await assert.rejects(promise, (error) => {
    assert(error instanceof RequestError, String(error));
    assert.deepEqual([error.code, error.data?.kind], [code, kind]);
    return true;
  });
}

/** The steps, in order; each may use what the ones before it have left in `story`. */
const STEPS = {
  "initialize: who the agent is and what it can do": async (agent, story) => {
    const told = await agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { auth: { terminal: true }, elicitation: { form: {} } },
      clientInfo: { name: "an editor", version: "1" },
    });
    assert.equal(told.protocolVersion, PROTOCOL_VERSION);
    assert.equal(told.agentInfo.name, "strongroom");
    assert.equal(told.agentCapabilities.loadSession, true);
    assert.deepEqual(Object.keys(told.agentCapabilities.sessionCapabilities).sort(), [
      "close",
      "delete",
      "fork",
      "list",
      "resume",
    ]);
    for (const { type, args } of told.authMethods) assert.deepEqual([type, args], ["terminal", ["login"]]);
    story.daemon = told._meta["_strongroom/daemon"].pid;
  },
  "authenticate: nothing is missing": async (agent) => {
    assert.deepEqual(await agent.request(methods.agent.authenticate, { methodId: "any" }), {});
  },
  "session/new: without a key the offline model answers, and says so": async (agent, story) => {
    const opened = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
    story.session = opened.sessionId;
    assert.equal(opened.modes.currentModeId, "edits");
    assert.equal(opened.configOptions.find((each) => each.id === "model").currentValue, "offline");
    assert.match(opened._meta["_strongroom/session"].notices.join(), /NO LANGUAGE MODEL/);
    await until(() => of(story.session, "notice").length);
    assert.equal(of(story.session, "notice")[0].title, "NO LANGUAGE MODEL");
    const [{ availableCommands }] = of(story.session, "available_commands_update");
    assert.equal(availableCommands.find((each) => each.name === "rules").input.hint, "revoke N, or keep N");
  },
  "session/prompt: everything is heard before the answer": async (agent, { session }) => {
    const before = answers;
    const answer = await prompt(agent, session, "read a.txt");
    assert.equal(answer.stopReason, "end_turn");
    assert.equal(updates.at(-1).answers, before);
    assert.match(said(session), /hello/);
    const [call] = of(session, "tool_call");
    assert.deepEqual([call.title, call.kind, call.rawInput], ["read_file a.txt", "read", { path: "a.txt" }]);
    assert.equal(call.name, "read_file");
    assert.equal(of(session, "tool_call_update").at(-1).status, "completed");
  },
  "session/request_permission: allowed": async (agent, { session }) => {
    decide = () => "allow_once";
    assert.equal((await prompt(agent, session, "write b.txt: new")).stopReason, "end_turn");
    assert.equal(readFileSync(note("b.txt"), "utf8"), "new");
    const { toolCall, options } = asked.at(-1);
    assert.deepEqual(toolCall.rawInput, { path: "b.txt", content: "new" });
    const differences = toolCall.content.filter((each) => each.type === "diff");
    assert.deepEqual(differences, [{ type: "diff", path: note("b.txt"), newText: "new" }]);
    assert.deepEqual(options.map((each) => each.optionId), ["allow_once", "edit", "reject_once"]);
  },
  "session/request_permission: rejected, closed, and an option that was not offered": async (agent, { session }) => {
    for (const option of ["reject_once", null, "allow_always"]) {
      decide = () => option;
      assert.equal((await prompt(agent, session, "write c.txt: new")).stopReason, "end_turn");
      assert.equal(of(session, "tool_call_update").at(-1).status, "failed");
    }
    assert(!existsSync(note("c.txt")));
  },
  "elicitation/create: what the person edited is what runs": async (agent, { session }) => {
    decide = () => "edit";
    fill = ({ mode, requestedSchema }) => {
      assert.equal(mode, "form");
      assert.equal(requestedSchema.properties.content.default, "new");
      return { action: "accept", content: { path: "d.txt", content: "newer" } };
    };
    await prompt(agent, session, "write c.txt: new");
    assert(!existsSync(note("c.txt")));
    assert.equal(readFileSync(note("d.txt"), "utf8"), "newer");
  },
  "session/cancel: the prompt ends as cancelled": async (agent, { session }) => {
    decide = async (params) => {
      await agent.notify(methods.agent.session.cancel, { sessionId: params.sessionId });
      return null;
    };
    assert.equal((await prompt(agent, session, "write e.txt: new")).stopReason, "cancelled");
    assert(!existsSync(note("e.txt")));
  },
  "$/cancel_request: so does a prompt whose request is cancelled": async (agent, { session }) => {
    const stop = new AbortController();
    decide = () => {
      stop.abort();
      return null;
    };
    const answer = await prompt(agent, session, "write e.txt: new", { cancellationSignal: stop.signal });
    assert.equal(answer.stopReason, "cancelled");
    assert(!existsSync(note("e.txt")));
  },
  "two sessions at once, on one connection": async (agent, story) => {
    const other = (await agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;
    story.other = other;
    let both;
    const waiting = new Set();
    const together = new Promise((resolve) => (both = resolve));
    decide = async ({ sessionId }) => {
      waiting.add(sessionId);
      if (waiting.size === 2) both();
      await together;
      return "allow_once";
    };
    const answers = await Promise.all([
      prompt(agent, story.session, "write one.txt: 1"),
      prompt(agent, other, "write two.txt: 2"),
    ]);
    assert.deepEqual(answers.map((each) => each.stopReason), ["end_turn", "end_turn"]);
    assert.equal(readFileSync(note("one.txt"), "utf8") + readFileSync(note("two.txt"), "utf8"), "12");
  },
  "session/list: newest first, by directory": async (agent, { session, other }) => {
    const { sessions } = await agent.request(methods.agent.session.list, { cwd });
    assert.deepEqual(sessions.map((each) => each.sessionId).sort(), [session, other].sort());
    assert.deepEqual((await agent.request(methods.agent.session.list, { cwd: "/" })).sessions, []);
  },
  "session/set_mode and session/set_config_option": async (agent, { other }) => {
    await agent.request(methods.agent.session.setMode, { sessionId: other, modeId: "plan" });
    assert.equal(of(other, "current_mode_update").at(-1).currentModeId, "plan");
    const changed = await agent.request(methods.agent.session.setConfigOption, {
      sessionId: other,
      configId: "profile",
      value: "vault",
    });
    assert.equal(changed.configOptions.find((each) => each.id === "profile").currentValue, "vault");
  },
  "session/close, then session/load: the same messages under the same ids": async (agent, { session }) => {
    const live = texts(session);
    await agent.request(methods.agent.session.close, { sessionId: session });
    updates.length = 0;
    await agent.request(methods.agent.session.load, { sessionId: session, cwd, mcpServers: [] });
    const replayed = texts(session);
    assert.deepEqual(replayed.filter(([kind]) => kind === "agent_message_chunk"), live);
    assert.equal(replayed[0][2], "read a.txt");
  },
  "session/resume: no history, and it goes on": async (agent, { session }) => {
    await agent.request(methods.agent.session.close, { sessionId: session });
    updates.length = 0;
    await agent.request(methods.agent.session.resume, { sessionId: session, cwd, mcpServers: [] });
    assert.deepEqual(texts(session), []);
    assert.equal((await prompt(agent, session, "read a.txt")).stopReason, "end_turn");
  },
  "_strongroom/status and _strongroom/call": async (agent, { session, daemon }) => {
    const status = await agent.request("_strongroom/status", {});
    assert.equal(status.daemon.pid, daemon);
    assert(status.sessions.some((each) => each.sessionId === session));
    const called = { sessionId: session, tool: "read_file", arguments: '{"path": "../secret"}' };
    assert.equal((await agent.request("_strongroom/call", called)).answer.error.kind, "path_escape");
  },
  "errors have a code and a kind": async (agent, { session }) => {
    await refused(-32601, "unknown_method", agent.request("_other/method", {}));
    await refused(-32602, "invalid_params", agent.request(methods.agent.session.new, { cwd: "here", mcpServers: [] }));
    await refused(-32602, "invalid_params", prompt(agent, session, " "));
    await refused(-32002, "not_found", prompt(agent, "no such session", "hello"));
  },
  "session/delete: it is not listed any more, and twice is no error": async (agent, { session, other }) => {
    for (const sessionId of [session, other, other]) await agent.request(methods.agent.session.delete, { sessionId });
    assert.deepEqual((await agent.request(methods.agent.session.list, { cwd })).sessions, []);
    await refused(-32002, "not_found", agent.request(methods.agent.session.load, { sessionId: session, cwd, mcpServers: [] }));
  },
};

function prompt(agent, sessionId, text, options) {
  return agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }, options);
}

function bridge() {
  const child = spawn(strongroom, ["acp"], { cwd, env: environment, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(code ?? signal));
  });
  const { writable, readable } = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  return { child, ended, stream: { writable, readable: readable.pipeThrough(tap) } };
}

async function tell() {
  const { child, ended, stream } = bridge();
  const guard = setTimeout(() => child.kill("SIGKILL"), HANG_GUARD);
  const story = {};
  const connection = editor.connect(stream);
  try {
    for (const [name, step] of Object.entries(STEPS)) {
      await Promise.race([
        step(connection.agent, story),
        ended.then((code) => assert.fail(`strongroom acp has ended: ${code}`)),
      ]).catch((error) => {
        console.log(`not ok ${name}`);
        throw error;
      });
      console.log(`ok ${name}`);
    }
    await until(() => delivered === heard);
    console.log("ok the SDK has taken every update");
    child.stdin.end();
    assert.equal(await ended, 0);
    console.log("ok strongroom acp ends with the editor");
  } finally {
    clearTimeout(guard);
    connection.close();
    child.kill("SIGKILL");
  }
}

mkdirSync(home, { mode: 0o700 });
mkdirSync(cwd);
writeFileSync(join(home, "config.toml"), '[profiles.vault]\nask = ["write_file"]\n');
writeFileSync(note("a.txt"), "hello\n");
try {
  await tell();
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  execFileSync(strongroom, ["daemon", "--stop"], { env: environment, stdio: "ignore", timeout: HANG_GUARD });
  rmSync(place, { recursive: true });
}
